"""Which devices of one node a claim is given: the first that will do, in the order of the devices.

A search that goes back where requests want the same devices, or devices that agree in an attribute; bounded in steps,
so that no claim can hold a cycle. Source: Kubernetes structured allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pumice.model.devices.claims import CLAIM_DEVICES_MAX, DeviceRequest, ResourceClaim, SameAttribute
from pumice.placing.claims.offers import Offers, qualified

#: Devices that are tried for one claim on one node; who needs more is told that there is no place.
STEPS_MAX = 4_096

#: What a claim is given: rows of devices, each with ``(request, option)`` by number.
Given = list[tuple[int, int, int]]


@dataclass(slots=True)
class _Search:
    offers: Offers
    claim: ResourceClaim
    free: Sequence[int]
    every: Sequence[int]
    taken: list[tuple[int, int, int]] = field(default_factory=list)
    steps: int = 0

    def fill(self, request: int) -> bool:
        """Whether this request and those after it can be given what they want, beside what is taken."""
        if request == len(self.claim.requests):
            return True
        for option in range(len(self.claim.requests[request].options)):
            mark = len(self.taken)
            for _ in self._ways(request, option):
                if self.fill(request + 1):
                    return True
            del self.taken[mark:]
        return False

    def _ways(self, request: int, option: int) -> Iterator[None]:
        wanted = self.claim.requests[request].options[option]
        mask = self.offers.matching(wanted)
        if isinstance(mask, str):
            return
        used = {row for row, _, _ in self.taken}
        fit = [row for row in self.free if mask[row] and row not in used]
        if wanted.every:
            here = [row for row in self.every if mask[row]]
            if here and len(here) == len(fit):
                yield from self._choose(request, option, fit, 0, len(fit))
        else:
            yield from self._choose(request, option, fit, 0, wanted.count)

    def _choose(self, request: int, option: int, fit: list[int], start: int, count: int) -> Iterator[None]:
        """Each way to take so many of ``fit``, from one of them on."""
        if not count:
            yield
            return
        for i in range(start, len(fit) - count + 1):
            self.steps += 1
            if self.steps > STEPS_MAX or len(self.taken) >= CLAIM_DEVICES_MAX:
                return
            if self._agrees(request, fit[i]):
                self.taken.append((fit[i], request, option))
                yield from self._choose(request, option, fit, i + 1, count - 1)
                self.taken.pop()

    def _agrees(self, request: int, row: int) -> bool:
        """Whether the device has the attributes that those taken have, as far as the claim wants that."""
        requests = self.claim.requests
        for same in self.claim.same:
            if not _concerns(same, requests[request]):
                continue
            value = _value(self.offers, same, row)
            others = (each for each, of_request, _ in self.taken if _concerns(same, requests[of_request]))
            if value is None or any(_value(self.offers, same, other) != value for other in others):
                return False
        return True


def allocate(offers: Offers, claim: ResourceClaim, free: Sequence[int], every: Sequence[int]) -> Given | None:
    """Devices for a claim out of those that are ``free`` on a node, in order; ``every``: all of that node. None: there
    are none, or they were not found in time."""
    search = _Search(offers, claim, free, every)
    return list(search.taken) if search.fill(0) else None


def can_never(offers: Offers, claim: ResourceClaim) -> str:
    """Why no node can ever give a claim what it asks for; empty where one may."""
    if claim.unknown:
        return f"{claim.unknown} is not supported"
    if sum(_least(request) for request in claim.requests) > CLAIM_DEVICES_MAX:
        asked = sum(count for _, count in claim.devices)
        return f"{asked} devices asked for, at most {CLAIM_DEVICES_MAX} can be given to a claim"
    for request in claim.requests:
        answers = [offers.matching(option) for option in request.options]
        problem = next((each for each in answers if isinstance(each, str)), "")
        if problem and all(isinstance(each, str) for each in answers):
            return f"request {request.name}: {problem}"
    return ""


def _least(request: DeviceRequest) -> int:
    return min(1 if each.every else each.count for each in request.options)


def _concerns(same: SameAttribute, request: DeviceRequest) -> bool:
    return not same.requests or request.name in same.requests


def _value(offers: Offers, same: SameAttribute, row: int) -> tuple[str, str] | None:
    return offers.attributes[row].get(qualified(same.attribute, offers.ids[row][0]))
