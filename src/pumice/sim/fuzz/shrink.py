"""Reduce a failing case: parts are left out while the same law stays broken."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from pumice.sim.fuzz.case import FuzzCase
from pumice.sim.fuzz.confs import Conf, needed_by

TRIES_MAX = 200


def shrunk(case: FuzzCase, breaks: Callable[[FuzzCase], str], tries: int = TRIES_MAX) -> FuzzCase:
    """Return the smallest case found that breaks the same law. ``breaks``: what a case breaks, "" for nothing."""
    wanted, smaller = law_of(breaks(case)), True
    while smaller:
        smaller = False
        for less in _smaller(case):
            tries -= 1
            if tries < 0:
                return case
            if law_of(breaks(less)) == wanted:
                case, smaller = less, True
                break
    return case


def law_of(problem: str) -> str:
    """Return what makes two findings equal: the law, or the kind of fault."""
    return problem.partition(":")[0]


def _smaller(case: FuzzCase) -> Iterator[FuzzCase]:
    """Yield the case without some part: objects first, half of them at a time, then fewer."""
    size = len(case.objects) // 2
    while size:
        for start in range(0, len(case.objects), size):
            yield replace(case, objects=case.objects[:start] + case.objects[start + size :])
        size //= 2
    for name in case.faults:
        yield replace(case, faults={key: value for key, value in case.faults.items() if key != name})
    yield from (replace(case, conf=conf) for conf in _less_policy(case.conf))


def _less_policy(conf: Conf) -> Iterator[Conf]:
    # A policy file of a user may name the actions without spaces, and has what it needs only.
    actions = [name.strip() for name in str(conf.get("actions", "")).split(",")]
    for i in (i for i, name in enumerate(actions) if name != "allocate" or actions.count(name) > 1):
        yield conf | {
            "actions": ", ".join(actions[:i] + actions[i + 1 :])
        }  # without actions, evictions have no purpose
    needed = needed_by(actions) if conf.get("dialect") != "kai" else frozenset()
    for t, tier in enumerate(conf.get("tiers") or ()):
        for p in (p for p, entry in enumerate(tier.get("plugins") or ()) if entry["name"] not in needed):
            less = copy.deepcopy(conf)
            del less["tiers"][t]["plugins"][p]
            less["tiers"] = [each for each in less["tiers"] if each.get("plugins")]
            yield less
    for i in range(len(conf.get("configurations") or ())):
        yield conf | {"configurations": conf["configurations"][:i] + conf["configurations"][i + 1 :]}
