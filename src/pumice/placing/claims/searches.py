"""Search devices for the claims of a pod on many nodes, in counted steps.

What a search finds follows from the free devices of a node, less their names. So nodes with equal devices are searched
once. Steps are bounded on a node, and for a question over all nodes: the questions of a namespace share its part, so
that no tenant's claims stop a cycle or take steps from others. The bound follows from the objects of the cycle alone,
never from what was asked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, I32, Bool
from pumice.model.devices.claims import CLAIM_DEVICES_MAX, DeviceOption, DeviceRequest, ResourceClaim, SameAttribute
from pumice.placing.claims.allocator import STEPS_MAX, Given, Steps, allocate
from pumice.placing.claims.offers import Offers

#: Steps of all questions of a cycle about one set of free devices. About 0.2 s.
SESSION_STEPS_MAX = 60_000
#: Steps that each question has in any case.
FLOOR = 64

#: Steps for evaluations of selectors in a cycle, shared by namespaces. About 1.2 s; answers are kept while devices are.
LOOKS_MAX = 80_000

#: What claims ask for. Pods with equal questions get equal answers.
Question = tuple[tuple[tuple[DeviceRequest, ...], tuple[SameAttribute, ...]], ...]


class NodesFound(NamedTuple):
    """``room``: nodes with devices, (N,). ``cut``: nodes that were not searched to the end, (N,), or None if all were.
    ``steps``: steps that the search took."""

    room: Bool
    cut: Bool | None
    steps: int


class _Answer(NamedTuple):
    """What a search of one node found. ``given``: positions of devices on the node for each claim, or None."""

    given: tuple[Given, ...] | None
    steps: int
    cut: bool


class Searches:
    """The searches of a session, and what they found. ``claims``: those that may be searched for."""

    def __init__(self, offers: Offers, claims: Iterable[ResourceClaim]) -> None:
        self._offers = offers
        self._answers: dict[tuple[Question, int, bytes], _Answer] = {}
        self._wait = [claim for claim in claims if claim.allocation is None]
        asked: dict[str, set[tuple[object, ...]]] = {}
        for claim in self._wait:
            asked.setdefault(claim.namespace, set()).add((claim.requests, claim.same))
        self._bounds = {
            # Divided by namespaces first, so that a tenant with many claims takes steps from itself and not from
            # others.
            namespace: max(FLOOR, SESSION_STEPS_MAX // len(asked) // len(questions))
            for namespace, questions in asked.items()
        }

    def bound(self, claims: Sequence[ResourceClaim]) -> int:
        """Return the steps of a question over all nodes."""
        return self._bounds.get(claims[0].namespace, FLOOR) if claims else FLOOR

    def is_too_costly(self, claim: ResourceClaim) -> bool:
        """Return True if the selectors of a claim are not evaluated in this cycle: those of claims before it in its
        namespace left too few steps."""
        return any((claim.namespace, option) in self._not_looked_up for option in _options(claim))

    @cached_property
    def _not_looked_up(self) -> set[tuple[str, DeviceOption]]:
        # Each namespace has its part, so that costly selectors of one tenant cut no other tenant's claims.
        left = dict.fromkeys(self._bounds, LOOKS_MAX // max(len(self._bounds), 1))
        counted: dict[str, set[object]] = {namespace: set() for namespace in left}
        cut, seen = set[tuple[str, DeviceOption]](), set[tuple[str, DeviceOption]]()
        for claim in self._wait:
            for option in _options(claim):
                key = claim.namespace, option
                if key in seen:
                    continue
                seen.add(key)
                # Counted before a selector runs, in a fixed order of claims: which selectors are cut must not depend on
                # what was asked first.
                if left[claim.namespace] <= 0:
                    cut.add(key)
                    continue
                before = counted[claim.namespace].copy()
                steps, beside = self._offers.looks(option, counted[claim.namespace])
                # The last one may take more than is left, so that the first one of a namespace is always evaluated,
                # however many devices there are. A costly one could take hours.
                if beside and steps + beside > left[claim.namespace]:
                    cut.add(key)
                    counted[claim.namespace] = before
                else:
                    left[claim.namespace] -= steps + beside
        return cut

    def on_nodes(
        self, claims: Sequence[ResourceClaim], nodes: I32, free: Bool, count: int, left: F64 | None = None
    ) -> NodesFound:
        """Return which of these nodes have devices for claims. ``count``: the number of all nodes. ``left``: of what
        devices consume; None: as if shares of devices consumed nothing."""
        left = self._offers.consumption.left(free) if left is None else left
        bound = self.bound(claims)
        room, cut, steps = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool), 0
        equal: dict[bytes, list[int]] = {}
        for node, face in zip(nodes.tolist(), self._faces(claims, nodes, free, left), strict=True):
            equal.setdefault(face, []).append(node)
        for face, rows in equal.items():
            if steps >= bound:
                cut[rows] = True
                continue
            # One search for all nodes whose devices look equal to it. In most clusters these are a handful of kinds of
            # nodes.
            answer = self._answer(claims, rows[0], face, free, left)
            steps += answer.steps
            room[rows] = answer.given is not None
            cut[rows] = answer.cut
        return NodesFound(room, cut if cut.any() else None, steps)

    def on_node(self, claims: Sequence[ResourceClaim], node: int, free: Bool, left: F64) -> list[Given] | None:
        """Return devices of a node for each claim out of the free ones, or None if they were not found. ``left``: of
        what devices consume."""
        plain = self.plain_on_node(claims, node, free)
        if plain is not None:
            return plain.next()
        (face,) = self._faces(claims, np.array([node], dtype=np.int32), free, left)
        given = self._answer(claims, node, face, free, left).given
        if given is None:
            return None
        devices = self._offers.placed[node].tolist()
        return [[(devices[at], request, option) for at, request, option in each] for each in given]

    def plain_on_node(self, claims: Sequence[ResourceClaim], node: int, free: Bool) -> PlainClaims | None:
        """Return what claims equal to a plain one get of a node, or None if devices must be searched for."""
        if len(claims) != 1 or self._offers.consumption or not _is_plain(claims[0]):
            return None
        return PlainClaims(self._offers, claims[0], node, free)

    def _answer(self, claims: Sequence[ResourceClaim], node: int, face: bytes, free: Bool, amounts: F64) -> _Answer:
        bound = min(STEPS_MAX, self.bound(claims))
        # With the bound: an answer that was cut earlier is no answer for a question that may search further.
        key = _question(claims), bound, face
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._search(claims, node, free, bound, amounts)
        return found

    def _search(self, claims: Sequence[ResourceClaim], node: int, free: Bool, bound: int, amounts: F64) -> _Answer:
        every = [row for row in self._offers.placed[node].tolist() if row >= 0]
        place = {row: at for at, row in enumerate(every)}
        left, steps = [row for row in every if free[row]], Steps(bound)
        # A copy, since the search subtracts what it takes.
        amounts_left = amounts.copy() if self._offers.consumption else None
        found: list[Given] = []
        for claim in claims:
            given = allocate(self._offers, claim, left, every, steps, amounts_left)
            # All or none: a pod with only some of its claims cannot start.
            if given is None:
                return _Answer(None, steps.spent, steps.cut)
            taken = {row for row, _, _ in given}
            left = [row for row in left if row not in taken]
            found.append([(place[row], request, option) for row, request, option in given])
        return _Answer(tuple(found), steps.spent, cut=False)

    def _faces(self, claims: Sequence[ResourceClaim], nodes: I32, free: Bool, left: F64) -> list[bytes]:
        """Return for each node what matters of its devices: equal bytes, equal search."""
        offers = self._offers
        rows = offers.placed[nodes]
        there = rows >= 0
        parts = [there, there & free[rows]] if len(offers) else [there]
        for option in dict.fromkeys(option for claim in claims for each in claim.requests for option in each.options):
            mask = offers.matching(option)
            if not isinstance(mask, str) and len(offers):
                parts.append(there & mask[rows])
        agreeing = [offers.agreeing(name)[nodes] for name in dict.fromkeys(s.attribute for c in claims for s in c.same)]
        table = np.concatenate([*(each.astype(np.int32) for each in parts), *agreeing], axis=1)
        if not offers.consumption:
            return [row.tobytes() for row in table]
        return [
            face.tobytes() + offers.consumption.looks((row for row in devices if row >= 0), left)
            for face, devices in zip(table, rows.tolist(), strict=True)
        ]


class PlainClaims:
    """Equal claims of one plain request on a node, one after the other: each gets the first devices that match an
    option and are ``free`` (D,)."""

    # Without a second request or constraint there is nothing to go back for, so no step is counted.

    __slots__ = ("_fit", "_free", "_offers", "_option", "_requests", "_rows", "node")

    def __init__(self, offers: Offers, claim: ResourceClaim, node: int, free: Bool) -> None:
        self._offers, self._requests, self.node, self._free = offers, claim.requests, node, free
        rows = offers.placed[node]
        self._rows = rows[rows >= 0]
        self._fit: list[int] = []
        self._option = -1

    def is_for(self, claim: ResourceClaim, node: int) -> bool:
        """Return True if a claim on a node is one of these."""
        return node == self.node and not claim.same and claim.requests == self._requests

    def next(self) -> list[Given] | None:
        """Return the devices of the next claim, or None. Those of the claims before it must not be free any more."""
        options = self._requests[0].options
        # An option that is used up for one claim is used up for the next: devices are only given in between.
        while self._option < 0 or len(self._fit) < options[self._option].count:
            if self._option + 1 == len(options):
                return None
            self._option += 1
            mask = self._offers.matching(options[self._option])
            # No device can match the option, so the next one is tried.
            fit = [] if isinstance(mask, str) else self._rows[self._free[self._rows] & mask[self._rows]].tolist()
            self._fit = fit
        count = options[self._option].count
        given, self._fit = self._fit[:count], self._fit[count:]
        return [[(device, 0, self._option) for device in given]]


def _is_plain(claim: ResourceClaim) -> bool:
    """Return True for a claim of one request whose devices need not be searched for."""
    if len(claim.requests) != 1 or claim.same:
        return False
    return not any(each.every or each.count > CLAIM_DEVICES_MAX for each in claim.requests[0].options)


def _options(claim: ResourceClaim) -> Iterator[DeviceOption]:
    """Yield the options of all requests of a claim."""
    for request in claim.requests:
        yield from request.options


def _question(claims: Sequence[ResourceClaim]) -> Question:
    return tuple((claim.requests, claim.same) for claim in claims)
