"""What one object may come to, and what one request may cost: every number here that a client chooses is bounded.

A server of one event loop answers nobody while it works on a request; a request that takes minutes is an outage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from pumice.apiserver.api.refusals import Refusal, bad_request, too_large
from pumice.model.manifest.reading.fields import Obj

#: Of one object as JSON. Source: etcd's bound on a request, which is what a real API server keeps objects to.
OBJECT_BYTES_MAX = 1_572_864
#: Of one body, and of one object: plain values, lists and objects in it, all counted.
VALUES_MAX = 100_000
#: Lists and objects inside of each other. The deepest definitions of kinds that are in use have some fifty.
DEPTH_MAX = 128
#: All objects together, as JSON. Their decoded form takes some four times as much.
STORE_BYTES_MAX = 1 << 30
#: Steps of judging one object by a schema: a schema's author, too, is a client.
JUDGING_STEPS_MAX = 300_000
#: Terms of disruption budgets that are looked at for one eviction.
BUDGET_STEPS_MAX = 2_000_000
#: Bytes that the copies of one JSON patch come to. Source: Kubernetes' ``JSONPatchMaxCopyBytes``.
COPIED_BYTES_MAX = 3 << 20
#: Items of lists that the operations of one JSON patch push along.
MOVED_ITEMS_MAX = 20_000_000

_encode = msgspec.json.Encoder().encode
_TOO_DEEP = f"it is nested more than {DEPTH_MAX} deep"
_SEPARATOR_BYTES = 64  # what a value takes in memory beside its text, about


class Work:
    """Counts down: the steps that are left, or the bytes. Raises: Refusal 413 where there are none."""

    __slots__ = ("_left", "_what")

    def __init__(self, most: int, what: str) -> None:
        self._left, self._what = most, what

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise Refusal(413, "RequestEntityTooLarge", f"{self._what} is more than this server does for one request")


def check_value(value: Any, raw: bytes) -> None:
    """What a body holds, whose text is ``raw``. Raises: Refusal 400 where it is nested too deep, 413 for too much."""
    containers = raw.count(b"{") + raw.count(b"[")
    if containers <= DEPTH_MAX and containers + raw.count(b",") < VALUES_MAX:
        return  # as good as always
    values, depth = 0, 0
    for level in _levels(value):
        values, depth = values + len(level), depth + 1
        if values > VALUES_MAX:
            raise Refusal(413, "RequestEntityTooLarge", f"there are more than {VALUES_MAX} values in it")
        if depth > DEPTH_MAX + 1:  # the last holds plain values
            raise bad_request(_TOO_DEEP)


def is_too_deep(value: Any) -> bool:
    """Whether walking through it could come to the end of the stack."""
    return any(depth > DEPTH_MAX for depth, _ in enumerate(_levels(value)))


def _levels(value: Any) -> Iterator[list[Any]]:
    """The value, what is in it, what is in that, and so on."""
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
    """An object that is about to be kept; its JSON. Raises: Refusal as ``check_value``, and 413 for too many bytes."""
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
    """About how many bytes an object takes in memory, its JSON and its decoded form together."""
    return len(raw) + _SEPARATOR_BYTES * (raw.count(b",") + raw.count(b"{") + raw.count(b"["))
