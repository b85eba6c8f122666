"""Bounds of objects and requests: every number that a client chooses is bounded.

A server with one event loop answers no client while it works on a request, so a request of minutes is an outage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from pumice.apiserver.refusals import Refusal, bad_request, too_large
from pumice.model.manifest.reading.fields import Obj

#: Bytes of one object as JSON. Source: etcd's limit of a request, which limits objects of a real API server.
OBJECT_BYTES_MAX = 1_572_864
#: Values, lists and objects in one body or object, all counted.
VALUES_MAX = 100_000
#: Nesting of lists and objects. The deepest definitions of kinds in use have about fifty.
DEPTH_MAX = 128
#: All objects together, as JSON. Their decoded form takes about four times as much.
STORE_BYTES_MAX = 1 << 30
#: Steps of validating one object by a schema. The author of a schema is a client, too.
JUDGING_STEPS_MAX = 300_000
#: Terms of disruption budgets that are evaluated for one eviction.
BUDGET_STEPS_MAX = 2_000_000
#: Bytes of copies in one JSON patch. Source: Kubernetes' ``JSONPatchMaxCopyBytes``.
COPIED_BYTES_MAX = 3 << 20
#: Items of lists that the operations of one JSON patch move.
MOVED_ITEMS_MAX = 20_000_000

_encode = msgspec.json.Encoder().encode
_TOO_DEEP = f"it is nested more than {DEPTH_MAX} deep"
_SEPARATOR_BYTES = 64  # about what a value takes in memory in addition to its text


class Work:
    """Counts down steps or bytes. Raises: Refusal 413 when none are left."""

    __slots__ = ("_left", "_what")

    def __init__(self, most: int, what: str) -> None:
        self._left, self._what = most, what

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise Refusal(413, "RequestEntityTooLarge", f"{self._what} is more than this server does for one request")


def check_value(value: Any, raw: bytes) -> None:
    """Check the contents of a body with the text ``raw``. Raises: Refusal 400 if nested too deep, 413 if too large."""
    containers = raw.count(b"{") + raw.count(b"[")
    if containers <= DEPTH_MAX and containers + raw.count(b",") < VALUES_MAX:
        return  # the usual case
    values, depth = 0, 0
    for level in _levels(value):
        values, depth = values + len(level), depth + 1
        if values > VALUES_MAX:
            raise Refusal(413, "RequestEntityTooLarge", f"there are more than {VALUES_MAX} values in it")
        if depth > DEPTH_MAX + 1:  # the last level has plain values
            raise bad_request(_TOO_DEEP)


def is_too_deep(value: Any) -> bool:
    """Return True if walking through a value could overflow the stack."""
    return any(depth > DEPTH_MAX for depth, _ in enumerate(_levels(value)))


def _levels(value: Any) -> Iterator[list[Any]]:
    """Yield the value, what it contains, what that contains, and so on."""
    level = [value]
    while level:
        yield level
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below


def check_object(obj: Obj) -> bytes:
    """Check an object that will be stored, and return its JSON. Raises: Refusal as ``check_value``, and 413 for too
    many bytes."""
    try:
        raw = _encode(obj)
    except RecursionError:
        raise bad_request(_TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        raise bad_request(f"it has no JSON representation: {error}") from None
    if len(raw) > OBJECT_BYTES_MAX:
        raise too_large("the object", OBJECT_BYTES_MAX)
    check_value(obj, raw)
    return raw


def weight(raw: bytes) -> int:
    """Return about how many bytes an object takes in memory, as JSON and decoded."""
    return len(raw) + _SEPARATOR_BYTES * (raw.count(b",") + raw.count(b"{") + raw.count(b"["))
