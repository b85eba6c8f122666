"""Find the smallest cluster that shows a breach, and write it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from pumice.framework.plugin.policy_file import PluginOption
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.testing.changes import Change, given, shown
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.walk import Start, Walk
from pumice.testing.clusters import Alter, key_of

ATTEMPTS_MAX = 200
CONTEXTS = 6  # more than in a walk, so that the question that shows it is less often missed


class Example(NamedTuple):
    """A breach, and where it can be seen."""

    breach: Breach
    start: Start
    changes: tuple[Change, ...]


Smaller = tuple[Start, Sequence[Change]]


def shrunk(walk: Walk, breach: Breach, alter: Alter | None) -> Example:
    """Return a smaller walk that shows the breach, leaving out one thing after the other, or the walk itself."""
    tries = _Tries(breach, alter)
    found = Example(breach, walk.start, tuple(walk.changes))
    if walk.states:
        last = replace(walk.states[-1], contexts=CONTEXTS, thorough=True, file_every=int(breach.rule == "file"))
        found = tries.of(last, walk.changes[-1:]) or found
    for smaller in (_without_changes, _without_plugins, _without_objects, _without_fields):
        for left_out in smaller(found):
            less = left_out(found)
            found = (tries.of(*less) if less is not None else None) or found
    return found


class _Tries:
    def __init__(self, breach: Breach, alter: Alter | None) -> None:
        self.left, self.wanted, self.alter = ATTEMPTS_MAX, breach.same, alter

    def of(self, start: Start, changes: Sequence[Change]) -> Example | None:
        """Return the breach, or None if there is none, or another one."""
        if self.left <= 0:
            return None
        self.left -= 1
        try:
            Walk(start, self.alter).again(changes)
        except Breach as breach:
            return Example(breach, start, tuple(changes)) if breach.same == self.wanted else None
        except Exception:  # an invalid cluster shows nothing
            return None
        return None


LeftOut = Callable[[Example], Smaller | None]  # the same with one thing less, None if that is gone already


def _without_changes(of: Example) -> Iterator[LeftOut]:
    return (partial(_without_change, gone) for gone in of.changes)


def _without_change(gone: Change, found: Example) -> Smaller:
    return found.start, [each for each in found.changes if each is not gone]


def _without_plugins(of: Example) -> Iterator[LeftOut]:
    options = of.start.policy.options
    return (partial(_without_plugin, gone) for gone in options if gone.spec.name not in of.start.plugins)


def _without_plugin(gone: PluginOption, found: Example) -> Smaller:
    policy = found.start.policy
    tiers = tuple(tuple(each for each in tier if each is not gone) for tier in policy.tiers)
    return replace(found.start, policy=replace(policy, tiers=tiers)), found.changes


def _without_objects(of: Example) -> Iterator[LeftOut]:
    """Yield pods before their group, and groups before their queue."""
    return (partial(_instead, key_of(gone), lambda obj: None) for gone in reversed(of.start.objects))


def _without_fields(of: Example) -> Iterator[LeftOut]:
    for obj in of.start.objects:
        for field in fields(obj):
            if field.default is not NODEFAULT and field.name not in _KEPT and getattr(obj, field.name) != field.default:
                yield partial(_instead, key_of(obj), partial(replace, **{field.name: field.default}))


def _instead(key: tuple[type[Object], str], plainer: Callable[[Any], Object | None], found: Example) -> Smaller | None:
    """Return the start with another object in place of one, or none."""
    objects = found.start.objects
    others = (plainer(each) if key_of(each) == key else each for each in objects)
    fewer = tuple(each for each in others if each is not None)
    return None if fewer == objects else (replace(found.start, objects=fewer), found.changes)


_KEPT = ("namespace", "name", "uid", "spec", "queue", "annotations", "allocatable")


def sketch(objects: Sequence[Object]) -> str:
    """Return a line per object, with fields that differ from the default."""
    return "\n".join(f"  {_line(obj)}" for obj in objects)


_LEFT_OUT = ("uid", "name", "namespace", "capacity", "nonzero_milli_cpu", "nonzero_memory", "spec")


def _line(obj: Object) -> str:
    kind, key = key_of(obj)
    values = {**given(obj), **(given(obj.spec) if isinstance(obj, Pod) else {})}
    said = ", ".join(f"{name} {shown(value)}" for name, value in values.items() if name not in _LEFT_OUT)
    return f"{kind.__name__} {key}: {said}"
