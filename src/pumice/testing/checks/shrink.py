"""A cluster as small as one can be found that shows the same breach, and how it is written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, replace
from typing import NamedTuple

from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.testing.changes import Change, given, shown
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.walk import Start, Walk
from pumice.testing.clusters import Alter, key_of

ATTEMPTS_MAX = 300
CONTEXTS = 6  # more than in a walk, so that fewer of the questions that show it are missed


class Shown(NamedTuple):
    """A breach, and where it can be seen."""

    breach: Breach
    start: Start
    changes: tuple[Change, ...]


def shrunk(walk: Walk, breach: Breach, alter: Alter | None) -> Shown:
    """The least that was found to show it; the walk itself where nothing less does."""
    tries = _Tries(breach, alter)
    found = Shown(breach, walk.start, tuple(walk.changes))
    if walk.states:
        found = tries.of(replace(walk.states[-1], contexts=CONTEXTS, thorough=True), walk.changes[-1:]) or found
    smaller: Shown | None = found
    while smaller is not None:
        found, smaller = smaller, None
        for start, changes in _smaller(found):
            smaller = tries.of(start, changes)
            if smaller is not None:
                break
    return found


class _Tries:
    def __init__(self, breach: Breach, alter: Alter | None) -> None:
        self.left, self.wanted, self.alter = ATTEMPTS_MAX, breach.same, alter

    def of(self, start: Start, changes: Sequence[Change]) -> Shown | None:
        """The breach as it is there, None where there is none, or another."""
        if self.left <= 0:
            return None
        self.left -= 1
        try:
            Walk(start, self.alter).again(changes)
        except Breach as breach:
            return Shown(breach, start, tuple(changes)) if breach.same == self.wanted else None
        except Exception:  # a cluster that nothing can be done with shows nothing
            return None
        return None


def _smaller(of: Shown) -> Iterator[tuple[Start, Sequence[Change]]]:
    """With a change less, a plugin beside less, an object less, or a field less of one."""
    start, objects = of.start, of.start.objects
    for i in range(len(of.changes)):
        yield start, of.changes[:i] + of.changes[i + 1 :]
    for option in start.policy.options:
        if option.spec.name not in start.plugins:
            tiers = tuple(tuple(each for each in tier if each is not option) for tier in start.policy.tiers)
            yield replace(start, policy=replace(start.policy, tiers=tiers)), of.changes
    for i in reversed(range(len(objects))):
        yield replace(start, objects=objects[:i] + objects[i + 1 :]), of.changes
    for i, obj in enumerate(objects):
        for plainer in _plainer(obj):
            yield replace(start, objects=(*objects[:i], plainer, *objects[i + 1 :])), of.changes


_KEPT = ("namespace", "name", "uid", "spec", "queue", "annotations", "allocatable")


def _plainer(obj: Object) -> Iterator[Object]:
    """With one field as by default."""
    for field in fields(obj):
        if field.default is not MISSING and field.name not in _KEPT and getattr(obj, field.name) != field.default:
            yield replace(obj, **{field.name: field.default})


def sketch(objects: Sequence[Object]) -> str:
    """A line an object, with what is not as by default."""
    return "\n".join(f"  {_line(obj)}" for obj in objects)


_LEFT_OUT = ("uid", "name", "namespace", "capacity", "nonzero_milli_cpu", "nonzero_memory", "spec")


def _line(obj: Object) -> str:
    kind, key = key_of(obj)
    values = {**given(obj), **(given(obj.spec) if isinstance(obj, Pod) else {})}
    said = ", ".join(f"{name} {shown(value)}" for name, value in values.items() if name not in _LEFT_OUT)
    return f"{kind.__name__} {key}: {said}"
