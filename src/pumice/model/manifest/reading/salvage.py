"""What counts of an object that cannot be read: of each field that is wrong, the reading that allows least.

An API server validates by rules of its own, which newer versions widen: what is there is there, whether we can read it
or not. So the strict reader says which field is wrong, a table says what stands in its place, and the reader is asked
again. Whether what could not be read may have forbidden something is told with the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pumice.model.manifest.reading.fields import FieldError, Obj

T = TypeVar("T")

REPAIRS_MAX = 16
#: What is wrong is remembered with the value, as far as anybody reads it.
_REMEMBERED_MAX = 4
_TOKEN = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
REMOVE = object()


class Rule(NamedTuple):
    """``path``: which fields, as a pattern; its group ``unit`` is what goes, or with a group ``key`` one entry of it.

    ``forbids``: what went may have forbidden something. ``instead``: a value to put in its place, or a function of the
    old one.
    """

    path: str
    forbids: bool = False
    instead: Any = REMOVE


def rule(unit: str, *, key: bool = False, forbids: bool = False, instead: Any = REMOVE) -> Rule:
    """The rule for a field, given by a pattern, and everything in it; with ``key`` for one entry of a map."""
    rest = r"\.(?P<key>.+)" if key else r"(?:[.\[].*)?"
    return Rule(rf"(?P<unit>{unit}){rest}", forbids, instead)


class Salvaged(NamedTuple, Generic[T]):
    """``unread``: what was wrong, the first of it. ``forbids``: some of it may have forbidden something."""

    value: T
    unread: tuple[str, ...]
    forbids: bool


def salvage(obj: Obj, read: Callable[[Obj], T], rules: Sequence[Rule], least: Callable[[Obj], Obj]) -> Salvaged[T]:
    """Read ``obj``, which is left as it is, with what is wrong replaced by the first rule that fits.

    ``least``: what is kept where no rule fits, or too much is wrong. Raises: FieldError where even that cannot be read.
    """
    unread: list[str] = []
    forbids = False
    for _ in range(REPAIRS_MAX):
        try:
            return Salvaged(read(obj), tuple(unread[:_REMEMBERED_MAX]), forbids)
        except FieldError as error:
            unread.append(str(error))
            repaired = _repair(obj, error.path, rules)
            if repaired is None:
                break
            obj = repaired[0]
            forbids |= repaired[1].forbids
    return Salvaged(read(least(obj)), tuple(unread[:_REMEMBERED_MAX]), True)


def _repair(obj: Obj, path: str, rules: Sequence[Rule]) -> tuple[Obj, Rule] | None:
    """The repaired object, and the rule that was followed; None where none fits."""
    for each in rules:
        match = re.fullmatch(each.path, path, re.DOTALL)  # compiled here: most inputs have nothing to be salvaged
        if match is None:
            continue
        steps: list[Any] = [int(index) if index else name for index, name in _TOKEN.findall(match["unit"])]
        if "key" in match.re.groupindex:
            steps.append(match["key"])
        repaired = _replaced(obj, steps, each.instead)
        return None if repaired is None else (repaired, each)
    return None


def _replaced(obj: Any, steps: list[Any], instead: Any) -> Any:
    """A copy of ``obj`` in which the field is replaced; None where there is no such field. Only what is on the way to
    the field is copied: the rest may be long, and is shared."""
    step = steps[0]
    if not isinstance(obj, dict if isinstance(step, str) else list):
        return None
    within = _get(obj, step)
    obj = obj.copy()
    if len(steps) > 1:
        obj[step] = _replaced(within, steps[1:], instead)
        return None if obj[step] is None else obj
    if instead is not REMOVE:
        obj[step] = instead(within) if callable(instead) else instead
    elif within is None and not (isinstance(obj, dict) and step in obj):
        return None
    else:
        del obj[step]
    return obj


def _get(obj: Any, step: Any) -> Any:
    try:
        return obj[step]
    except (KeyError, IndexError):
        return None


def texts_of(obj: Obj, part: str, *keys: str) -> Obj:
    """Those fields of one part of an object that are texts, for ``least``."""
    found = obj.get(part)
    found = found if isinstance(found, dict) else {}
    return {key: found[key] for key in keys if isinstance(found.get(key), str)}


# -- metadata, which all have


def metadata_rules(forbids: bool) -> tuple[Rule, ...]:
    """``forbids``: whether labels and annotations of this kind are asked what may be done."""
    return (
        rule(r"metadata\.(?:labels|annotations)", key=True, forbids=forbids),
        rule(r"metadata\.(?:labels|annotations)", forbids=forbids),
        rule(r"metadata\.(?:uid|resourceVersion|creationTimestamp|deletionTimestamp|ownerReferences)"),
    )
