"""What counts of an object that cannot be read: of each field that is wrong, the reading that allows least.

An API server validates by rules of its own, which newer versions widen: what is there is there, whether we can read it
or not. So the strict reader says which field is wrong, a table says what stands in its place, and the reader is asked
again. Whether what could not be read may have forbidden something is told with the value.
"""

from __future__ import annotations

import copy
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
    obj = copy.deepcopy(obj)
    unread: list[str] = []
    forbids = False
    for _ in range(REPAIRS_MAX):
        try:
            return Salvaged(read(obj), tuple(unread[:_REMEMBERED_MAX]), forbids)
        except FieldError as error:
            unread.append(str(error))
            chosen = _repair(obj, error.path, rules)
            if chosen is None:
                break
            forbids |= chosen.forbids
    return Salvaged(read(least(obj)), tuple(unread[:_REMEMBERED_MAX]), True)


def _repair(obj: Obj, path: str, rules: Sequence[Rule]) -> Rule | None:
    """The rule that was followed; None where none fits."""
    for each in rules:
        match = re.fullmatch(each.path, path, re.DOTALL)  # compiled here: most inputs have nothing to be salvaged
        if match is None:
            continue
        steps: list[Any] = [int(index) if index else name for index, name in _TOKEN.findall(match["unit"])]
        if "key" in match.re.groupindex:
            steps.append(match["key"])
        return each if _replace(obj, steps, each.instead) else None
    return None


def _replace(obj: Any, steps: list[Any], instead: Any) -> bool:
    for step in steps[:-1]:
        try:
            obj = obj[step]
        except (KeyError, IndexError, TypeError):
            return False
    last = steps[-1]
    if not isinstance(obj, dict if isinstance(last, str) else list):
        return False
    if instead is not REMOVE:
        obj[last] = instead(_get(obj, last)) if callable(instead) else copy.deepcopy(instead)
    elif _get(obj, last) is None and not (isinstance(obj, dict) and last in obj):
        return False
    else:
        del obj[last]
    return True


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
