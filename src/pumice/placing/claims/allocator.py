"""Choose devices of one node for a claim: the first that are possible, in the order of the devices.

The search backtracks if requests compete for devices, or if devices must agree in an attribute. Its steps are counted
and bounded, so that no claim can stop a cycle. Two rules keep it short without changing what it finds: a value of an
attribute with too few devices is never chosen, and of devices that differ in nothing that matters here only the first
is tried. Source: Kubernetes structured allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pumice.columns.dtypes import F64, Bool
from pumice.model.devices.claims import CLAIM_DEVICES_MAX, DeviceRequest, ResourceClaim, SameAttribute
from pumice.placing.claims.counters import Consumed
from pumice.placing.claims.offers import Offers

#: Steps of one search on one node: devices that are tried. A search that needs more is cut.
STEPS_MAX = 4_096
#: Devices that are looked up for the price of one step.
_LOOKED_UP = 4

#: Devices of a claim: rows of devices, each with the indices ``(request, option)``.
Given = list[tuple[int, int, int]]
#: What distinguishes a device in a search: which options take it, and its values of the attributes.
_Face = tuple[tuple[bool, ...], tuple[tuple[str, str] | None, ...]]


class Steps:
    """Counted steps of searches. ``left``: steps until they are cut. ``cut``: a search was cut, so that finding nothing
    proves nothing."""

    __slots__ = ("cut", "left", "spent")

    def __init__(self, left: int = STEPS_MAX) -> None:
        self.left, self.spent, self.cut = left, 0, False

    def take(self, count: int = 1) -> bool:
        """Take steps. Return False if none is left."""
        if self.left <= 0:
            self.cut = True
            return False
        self.left -= count
        self.spent += count
        return True


@dataclass(slots=True)
class _Search:
    """A search for devices for one claim."""

    offers: Offers
    claim: ResourceClaim
    free: Sequence[int]
    every: Sequence[int]
    steps: Steps
    left: F64 | None
    taken: list[tuple[int, int, int]] = field(default_factory=list)
    faces: dict[int, _Face] = field(default_factory=dict)
    concerned: list[list[bool]] = field(default_factory=list)

    def prepare(self) -> bool:
        """Look up what matters of each free device. Return False if counting shows that the search finds nothing."""
        # Taken before the work is done: a node with very many devices must not cost more than the bound.
        if not self.steps.take(1 + len(self.free) // _LOOKED_UP):
            return False
        requests, same = self.claim.requests, self.claim.same
        masks = [self.offers.matching(option) for request in requests for option in request.options]
        for row in self.free:
            fits = tuple(not isinstance(mask, str) and bool(mask[row]) for mask in masks)
            self.faces[row] = fits, tuple(self.offers.value_of(each.attribute, row) for each in same)
        self.concerned = [[_concerns(each, request) for each in same] for request in requests]
        return all(each.distinct or self._refuse_values(i) for i, each in enumerate(same))

    def _refuse_values(self, i: int) -> bool:
        """Remove values of an attribute of which there are too few devices. Return False if no value is left."""
        needs = self._needs(i)
        # A constraint on no device refuses no value.
        if not sum(least for _, least in needs):
            return True
        of_value: dict[tuple[str, str], list[tuple[bool, ...]]] = {}
        for fits, values in self.faces.values():
            if (value := values[i]) is not None:
                of_value.setdefault(value, []).append(fits)
        enough = {value for value, faces in of_value.items() if _enough(faces, needs)}
        for row, (fits, values) in self.faces.items():
            if values[i] not in enough:
                # A device without a value agrees with no other, so it is never chosen.
                self.faces[row] = fits, (*values[:i], None, *values[i + 1 :])
        return bool(enough)

    def _needs(self, i: int) -> list[tuple[range, int]]:
        """Return the options and the least number of devices of each request that a constraint concerns."""
        found, first = [], 0
        for request, concerned in zip(self.claim.requests, self.concerned, strict=True):
            if concerned[i]:
                found.append((range(first, first + len(request.options)), _least(request)))
            first += len(request.options)
        return found

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
                # Without steps every way fails, and there may be too many to ask each of them.
                if self.steps.cut:
                    break
            # What the failed option has left must not count for the next one.
            while len(self.taken) > mark:
                self._give_back()
        return False

    def _ways(self, request: int, option: int) -> Iterator[None]:
        """Yield each way to satisfy one option of a request."""
        wanted = self.claim.requests[request].options[option]
        mask = self.offers.matching(wanted)
        # An option that can never be satisfied is skipped, since another option may be.
        if isinstance(mask, str) or not self.steps.take():
            return
        if wanted.every:
            fit = self._fit(mask, 1)
            first = self.offers.consumption.first
            here = {int(first[row]) for row in self.every if mask[row]}
            # ``every`` means all devices of the node that match, so one that is in use makes it impossible.
            if here and len(here) == len(fit):
                yield from self._choose(request, option, fit, 0, len(fit))
        else:
            yield from self._choose(request, option, self._fit(mask, wanted.count), 0, wanted.count)

    def _fit(self, mask: Bool, shares: int) -> list[int]:
        """Return the free devices that match, and of a device that is shared no more shares than can be needed."""
        used = {row for row, _, _ in self.taken}
        # In the order of the devices, so that equal clusters give equal allocations.
        fit = [row for row in self.free if mask[row] and row not in used]
        consumption = self.offers.consumption
        if not consumption.width and not consumption.shared.any():
            return fit
        counts: dict[int, int] = {}
        found = []
        for row in fit:
            device = int(consumption.first[row])
            counts[device] = counts.get(device, 0) + 1
            if counts[device] <= shares:
                found.append(row)
        return found

    def _choose(self, request: int, option: int, fit: list[int], start: int, count: int) -> Iterator[None]:
        """Yield each way to take ``count`` of ``fit`` from index ``start`` on. While suspended, the devices are in
        ``taken``."""
        if not count:
            yield
            return
        tried: set[tuple[_Face, Consumed]] = set()
        asked = self.claim.requests[request].options[option].capacity
        for i in range(start, len(fit) - count + 1):
            face = self.faces[fit[i]]
            # All that can follow a device can follow an equal one before it, which has failed.
            # Devices that differ in what they consume are not equal: where the whole fails, a partition may fit.
            consumed = self.offers.consumption.of(fit[i], asked)
            if (face, consumed) in tried:
                continue
            tried.add((face, consumed))
            # Without this bound, a few claims with many unequal devices would need exponentially many steps.
            if not self.steps.take() or len(self.taken) >= CLAIM_DEVICES_MAX:
                return
            if self._agrees(request, face) and self._has_left(consumed):
                self._take(fit[i], request, option, consumed)
                yield from self._choose(request, option, fit, i + 1, count - 1)
                self._give_back()

    def _has_left(self, consumed: Consumed) -> bool:
        """Return True if enough is left of each counter that a device consumes."""
        return self.left is None or all(self.left[each] >= amount for each, amount in consumed)

    def _take(self, row: int, request: int, option: int, consumed: Consumed) -> None:
        self.taken.append((row, request, option))
        # Kept up to date and not summed over what is taken, which would cost each step up to 32 devices.
        if self.left is not None:
            for each, amount in consumed:
                self.left[each] -= amount

    def _give_back(self) -> None:
        """Undo the last ``_take``."""
        row, request, option = self.taken.pop()
        if self.left is not None:
            asked = self.claim.requests[request].options[option].capacity
            for each, amount in self.offers.consumption.of(row, asked):
                self.left[each] += amount

    def _agrees(self, request: int, face: _Face) -> bool:
        """Return True if the device agrees with those taken in the attributes that must be equal, or differ."""
        for i, value in enumerate(face[1]):
            if not self.concerned[request][i]:
                continue
            # A device without the attribute agrees with no other, as in Kubernetes.
            if value is None:
                return False
            others = (self.faces[row][1][i] for row, of_request, _ in self.taken if self.concerned[of_request][i])
            if self.claim.same[i].distinct:
                if value in others:
                    return False
            # Those taken agree with each other, so the first one speaks for all.
            elif next(others, value) != value:
                return False
        return True


def allocate(
    offers: Offers,
    claim: ResourceClaim,
    free: Sequence[int],
    every: Sequence[int],
    steps: Steps | None = None,
    left: F64 | None = None,
) -> Given | None:
    """Return devices for a claim out of those that are ``free`` on a node, in order, or None if there are none, or if
    the search was cut, which ``steps`` tells. ``every``: all devices of the node. ``left``: of each counter, from which
    the amounts of the devices are subtracted; None if no device consumes any."""
    search = _Search(offers, claim, free, every, steps or Steps(), left)
    return list(search.taken) if search.prepare() and search.fill(0) else None


def _enough(faces: list[tuple[bool, ...]], needs: list[tuple[range, int]]) -> bool:
    """Return True if the devices of one value are enough for each request, and for all together."""
    usable = 0
    counts = [0] * len(needs)
    for fits in faces:
        takes = [any(fits[option] for option in options) for options, _ in needs]
        usable += any(takes)
        counts = [count + take for count, take in zip(counts, takes, strict=True)]
    each = all(count >= least for count, (_, least) in zip(counts, needs, strict=True))
    return each and usable >= sum(least for _, least in needs)


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
