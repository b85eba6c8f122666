"""Selectors of labels and of fields, as kubectl writes them."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from pumice.apiserver.bounds import Work
from pumice.apiserver.refusals import bad_request
from pumice.model.manifest.reading.fields import Obj

Test = Callable[[Obj], bool]

TEXT_MAX = 16_384
TERMS_MAX = 100  # each is evaluated for every object
_KEY = r"(?:[a-z0-9A-Z.-]+/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_SET = re.compile(rf"\s*(?P<key>{_KEY})\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_EQUAL = re.compile(rf"\s*(?P<key>{_KEY})\s*(?P<op>==|=|!=|>|<)\s*(?P<value>{_VALUE})\s*")
_EXISTS = re.compile(rf"\s*(?P<not>!?)\s*(?P<key>{_KEY})\s*")


class Selection(Struct, frozen=True):
    """What a list or a watch selects. ``name``: the one object that the field selector names, "" for any."""

    tests: tuple[Test, ...] = ()
    name: str = ""

    def __call__(self, obj: Obj) -> bool:
        return all(test(obj) for test in self.tests)


def selection(labels: str, fields: str, known_fields: frozenset[str]) -> Selection:
    """Return a selection. Raises: Refusal 400 for an invalid selector, or one with a field by which this kind cannot be
    selected."""
    if len(labels) + len(fields) > TEXT_MAX:
        raise bad_request(f"a selector of more than {TEXT_MAX} characters")
    found, name = _field_tests(fields, known_fields)
    tests = (*_label_tests(labels), *found)
    if len(tests) > TERMS_MAX:
        raise bad_request(f"a selector of more than {TERMS_MAX} terms")
    return Selection(tests, name)


# -- labels


def _label_tests(text: str) -> tuple[Test, ...]:
    tests: list[Test] = []
    rest = text.strip()
    while rest:
        match = _SET.match(rest) or _EQUAL.match(rest) or _EXISTS.match(rest)
        end = match.end() if match else 0
        if match is None or (end < len(rest) and rest[end] != ","):
            raise bad_request(f"unable to parse the label selector {text[:200]!r} at {rest[:40]!r}")
        tests.append(_label_test(match))
        rest = rest[end + 1 :]
    return tuple(tests)


def _label_test(match: re.Match[str]) -> Test:
    groups = match.groupdict()
    key = groups["key"]
    if "values" in groups:
        values = frozenset(value.strip() for value in groups["values"].split(","))
        if groups["op"] == "in":
            return lambda obj: _labels(obj).get(key) in values
        return lambda obj: _labels(obj).get(key) not in values
    if "value" in groups:
        return _comparison(key, groups["op"], groups["value"])
    if groups["not"]:
        return lambda obj: key not in _labels(obj)
    return lambda obj: key in _labels(obj)


def _comparison(key: str, op: str, value: str) -> Test:
    if op == "!=":
        return lambda obj: _labels(obj).get(key) != value
    if op in "><":
        bound = _whole(value)
        if bound is None:
            raise bad_request(f"a label selector compares {key} with {value!r}, wanted a whole number")
        return lambda obj: _beyond(_whole(_labels(obj).get(key)), bound, op)
    return lambda obj: _labels(obj).get(key) == value


def _beyond(found: int | None, bound: int, op: str) -> bool:
    return found is not None and (found > bound if op == ">" else found < bound)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text) else None


def _labels(obj: Obj) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


# -- fields


def _field_tests(text: str, known: frozenset[str]) -> tuple[list[Test], str]:
    tests: list[Test] = []
    only = ""
    for term in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([\w./-]+)(==|=|!=)(.*)", term)
        if match is None:
            raise bad_request(f"unable to parse the field selector {term[:100]!r}")
        path, op, value = match.groups()
        if path not in known:
            raise bad_request(f"field label not supported: {path[:100]}; there are {', '.join(sorted(known))}")
        if path == "metadata.name" and op != "!=":
            only = value
        tests.append(_field_test(tuple(path.split(".")), value, op != "!="))
    return tests, only


def _field_test(path: tuple[str, ...], value: str, equal: bool) -> Test:
    def test(obj: Obj) -> bool:
        found: object = obj
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return (_text(found) == value) is equal

    return test


def _text(found: object) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    return "" if found is None else str(found)


# -- label selectors inside objects


def matches(selector: Obj, labels: dict[str, str], work: Work) -> bool:
    """Return True if labels match the selector of an object (``matchLabels`` and ``matchExpressions``); an empty one
    matches all.

    Raises: Refusal 413 if there is no ``work`` left.
    """
    terms = selector.get("matchExpressions") or ()
    work.spend(1 + len(selector.get("matchLabels") or ()) + sum(1 + len(each.get("values") or ()) for each in terms))
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_fits(each, labels) for each in terms)


def _fits(requirement: Obj, labels: dict[str, str]) -> bool:
    key, values = requirement.get("key", ""), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
