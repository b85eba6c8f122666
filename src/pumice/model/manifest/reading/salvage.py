"""Read what counts of an unreadable object: each invalid field is replaced by the most restrictive value.

An API server validates by its own rules, which newer versions widen, so an object exists whether we can read it or not.
The strict reader names the invalid field, a table says what replaces it, and the object is read again. The result says
whether an invalid field may have forbidden something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pumice.model.manifest.reading.fields import FieldError, Obj

T = TypeVar("T")

REPAIRS_MAX = 16
#: Errors that are kept with the value. More would not be read.
_REMEMBERED_MAX = 4
_TOKEN = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
# An object of its own, since None may be the value that replaces a field.
REMOVE = object()


class Rule(NamedTuple):
    """A rule for invalid fields. ``path``: a pattern for their path, whose group ``unit`` is removed, or with a group
    ``key`` one entry of it.

    ``forbids``: the field may have forbidden something. ``instead``: the value that replaces it, or a function of the
    old value.
    """

    path: str
    forbids: bool = False
    instead: Any = REMOVE


def rule(unit: str, *, key: bool = False, forbids: bool = False, instead: Any = REMOVE) -> Rule:
    """Return the rule for a field, given by a pattern, and everything in it; with ``key``, for one entry of a map."""
    rest = r"\.(?P<key>.+)" if key else r"(?:[.\[].*)?"
    # The whole unit is replaced, however deep the error is: half of a term may mean the opposite.
    return Rule(rf"(?P<unit>{unit}){rest}", forbids, instead)


class Salvaged(NamedTuple, Generic[T]):
    """A value read with repairs. ``unparsable``: the first errors. ``forbids``: one of the fields may have forbidden
    something."""

    value: T
    unparsable: tuple[str, ...]
    forbids: bool


def salvage(obj: Obj, read: Callable[[Obj], T], rules: Sequence[Rule], least: Callable[[Obj], Obj]) -> Salvaged[T]:
    """Read ``obj``, without changing it, with invalid fields replaced by the first rule that fits.

    ``least``: what is kept if no rule fits, or too many fields are invalid. Raises: FieldError if even that is
    unreadable.
    """
    unparsable: list[str] = []
    forbids = False
    # Each round repairs one field. Bounded, because each reads the whole object again.
    for _ in range(REPAIRS_MAX):
        try:
            return Salvaged(read(obj), tuple(unparsable[:_REMEMBERED_MAX]), forbids)
        except FieldError as error:
            unparsable.append(str(error))
            # The error's path says which field to repair, so rules need no readers of their own.
            repaired = _repair(obj, error.path, rules)
            if repaired is None:
                break
            obj = repaired[0]
            # One field is enough, since it is not known what it said.
            forbids |= repaired[1].forbids
    # ``forbids`` is True here, because most of the object was left out.
    return Salvaged(read(least(obj)), tuple(unparsable[:_REMEMBERED_MAX]), True)


def _repair(obj: Obj, path: str, rules: Sequence[Rule]) -> tuple[Obj, Rule] | None:
    """Return the repaired object and the rule that was used, or None if none fits."""
    for each in rules:
        match = re.fullmatch(each.path, path, re.DOTALL)  # compiled here: most inputs have nothing to be salvaged
        if match is None:
            continue
        steps: list[Any] = [int(index) if index else name for index, name in _TOKEN.findall(match["unit"])]
        if "key" in match.re.groupindex:
            steps.append(match["key"])
        repaired = _replaced(obj, steps, each.instead)
        # The first rule that fits counts, even if it finds nothing to repair, so narrow rules go before wide ones.
        return None if repaired is None else (repaired, each)
    return None


def _replaced(obj: Any, steps: list[Any], instead: Any) -> Any:
    """Return a copy of ``obj`` with the field replaced, or None if there is no such field."""
    step = steps[0]
    if not isinstance(obj, dict if isinstance(step, str) else list):
        return None
    # Only what is on the way to the field is copied. The rest may be long, and is shared.
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
    """Return those fields of one part of an object that are texts, for ``least``."""
    found = obj.get(part)
    found = found if isinstance(found, dict) else {}
    return {key: found[key] for key in keys if isinstance(found.get(key), str)}


# -- metadata, which all have


def metadata_rules(forbids: bool) -> tuple[Rule, ...]:
    """Return rules for metadata. ``forbids``: labels and annotations of this kind decide what is allowed."""
    return (
        rule(r"metadata\.(?:labels|annotations)", key=True, forbids=forbids),
        rule(r"metadata\.(?:labels|annotations)", forbids=forbids),
        rule(r"metadata\.(?:uid|resourceVersion|creationTimestamp|deletionTimestamp|ownerReferences)"),
    )
