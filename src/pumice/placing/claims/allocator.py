"""Choose devices of one node for a claim: the first that are possible, in the order of the devices.

The search backtracks if requests compete for devices, or if devices must agree in an attribute. Its steps are bounded,
so that no claim can stop a cycle. Source: Kubernetes structured allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pumice.model.devices.claims import CLAIM_DEVICES_MAX, DeviceRequest, ResourceClaim, SameAttribute
from pumice.placing.claims.offers import Offers, qualified

#: Devices that are tried for one claim on one node. A claim that needs more is treated as if nothing were free.
STEPS_MAX = 4_096

#: Devices of a claim: rows of devices, each with the indices ``(request, option)``.
Given = list[tuple[int, int, int]]


@dataclass(slots=True)
class _Search:
    """A search for devices for one claim."""

    offers: Offers
    claim: ResourceClaim
    free: Sequence[int]
    every: Sequence[int]
    taken: list[tuple[int, int, int]] = field(default_factory=list)
    steps: int = 0

    def fill(self, request: int) -> bool:
        """Return True if this request and those after it can be satisfied with what is left. Their devices are in
        ``taken``."""
        if request == len(self.claim.requests):
            return True
        for option in range(len(self.claim.requests[request].options)):
            mark = len(self.taken)
            # Generators, because a later request may fail with the first devices and succeed with others.
            for _ in self._ways(request, option):
                if self.fill(request + 1):
                    return True
            # What the failed option has left must not count for the next one.
            del self.taken[mark:]
        return False

    def _ways(self, request: int, option: int) -> Iterator[None]:
        """Yield each way to satisfy one option of a request."""
        wanted = self.claim.requests[request].options[option]
        mask = self.offers.matching(wanted)
        # An option that can never be satisfied is skipped, since another option may be.
        if isinstance(mask, str):
            return
        used = {row for row, _, _ in self.taken}
        # In the order of the devices, so that equal clusters give equal allocations.
        fit = [row for row in self.free if mask[row] and row not in used]
        if wanted.every:
            here = [row for row in self.every if mask[row]]
            # ``every`` means all devices of the node that match, so one that is in use makes it impossible.
            if here and len(here) == len(fit):
                yield from self._choose(request, option, fit, 0, len(fit))
        else:
            yield from self._choose(request, option, fit, 0, wanted.count)

    def _choose(self, request: int, option: int, fit: list[int], start: int, count: int) -> Iterator[None]:
        """Yield each way to take ``count`` of ``fit`` from index ``start`` on. While suspended, the devices are in
        ``taken``."""
        if not count:
            yield
            return
        for i in range(start, len(fit) - count + 1):
            self.steps += 1
            # Without this bound, a few claims with many equal devices would need exponentially many steps.
            if self.steps > STEPS_MAX or len(self.taken) >= CLAIM_DEVICES_MAX:
                return
            if self._agrees(request, fit[i]):
                self.taken.append((fit[i], request, option))
                yield from self._choose(request, option, fit, i + 1, count - 1)
                self.taken.pop()

    def _agrees(self, request: int, row: int) -> bool:
        """Return True if the device agrees with those taken in the attributes that must be equal."""
        requests = self.claim.requests
        for same in self.claim.same:
            if not _concerns(same, requests[request]):
                continue
            value = _value(self.offers, same, row)
            others = (each for each, of_request, _ in self.taken if _concerns(same, requests[of_request]))
            # A device without the attribute agrees with no other, as in Kubernetes.
            if value is None or any(_value(self.offers, same, other) != value for other in others):
                return False
        return True


def allocate(offers: Offers, claim: ResourceClaim, free: Sequence[int], every: Sequence[int]) -> Given | None:
    """Return devices for a claim out of those that are ``free`` on a node, in order, or None if there are none or the
    search was cut. ``every``: all devices of the node."""
    search = _Search(offers, claim, free, every)
    return list(search.taken) if search.fill(0) else None


def can_never(offers: Offers, claim: ResourceClaim) -> str:
    """Return why no node can ever satisfy the claim, or "" if one may."""
    if claim.unknown:
        return f"{claim.unknown} is not supported"
    if sum(_least(request) for request in claim.requests) > CLAIM_DEVICES_MAX:
        asked = sum(count for _, count in claim.devices)
        return f"{asked} devices asked for, at most {CLAIM_DEVICES_MAX} can be given to a claim"
    for request in claim.requests:
        answers = [offers.matching(option) for option in request.options]
        # One option without a problem is enough, since the request may take that.
        problem = next((each for each in answers if isinstance(each, str)), "")
        if problem and all(isinstance(each, str) for each in answers):
            return f"request {request.name}: {problem}"
    return ""


def _least(request: DeviceRequest) -> int:
    """Return the least number of devices that satisfies a request."""
    # ``every`` needs at least one device, however many a node has.
    return min(1 if each.every else each.count for each in request.options)


def _concerns(same: SameAttribute, request: DeviceRequest) -> bool:
    """Return True if the constraint is about the request."""
    return not same.requests or request.name in same.requests


def _value(offers: Offers, same: SameAttribute, row: int) -> tuple[str, str] | None:
    """Return the value of the attribute of a device, or None."""
    return offers.attributes[row].get(qualified(same.attribute, offers.ids[row][0]))
