"""Amounts of a device that claims consume: what a request takes of it, and how often the device can be given at once.

Source: KEP-5075 (consumable capacity), consumable_capacity.go of the structured allocator.
"""

from __future__ import annotations

from pumice.model.devices.claims import Amounts, CapacityPolicy, Device

#: The most shares of one device that are given. A device without capacities could be given without end.
SHARES_MAX = 64

_NO_POLICY = CapacityPolicy()


def consumption(device: Device, asked: Amounts) -> Amounts | None:
    """Return what a request consumes of each capacity of a device, or None if the device cannot serve it."""
    wanted, policies = dict(asked), dict(device.policies)
    # A capacity that the device does not have cannot be had from it.
    if not wanted.keys() <= {name for name, _ in device.capacity}:
        return None
    found = []
    for name, total in device.capacity:
        amount = _rounded(wanted.get(name), total, policies.get(name, _NO_POLICY))
        if amount is None or amount > total:
            return None
        found.append((name, amount))
    return tuple(found)


def most_shares(device: Device) -> int:
    """Return the number of shares of a device that can exist at once, 1 for a device that is given as a whole."""
    if not device.multiple:
        return 1
    policies = dict(device.policies)
    bounds = [
        total // least
        for name, total in device.capacity
        if (least := _least(total, policies.get(name, _NO_POLICY), name not in policies))
    ]
    return int(max(1, min(SHARES_MAX, *bounds)) if bounds else SHARES_MAX)


def shares_without_request(device: Device) -> int:
    """Return how often a device can be given to requests that name no capacity."""
    each = consumption(device, ()) if device.multiple else None
    if each is None:
        return 0 if device.multiple else 1
    totals = dict(device.capacity)
    # A capacity of which nothing is consumed limits nothing, and a device may have no other.
    return int(min([SHARES_MAX, *(totals[name] // amount for name, amount in each if amount)]))


def _least(total: float, policy: CapacityPolicy, free: bool) -> float:
    """Return the least that a request can consume of a capacity, 0 if any amount is possible."""
    named = [each for each in (policy.default, policy.minimum, *policy.values) if each is not None]
    return 0.0 if free or not named else min(named)


def _rounded(asked: float | None, total: float, policy: CapacityPolicy) -> float | None:
    """Return what is consumed of a capacity: the request, rounded up as its policy says, or None if that forbids it."""
    if asked is None:
        amount = total if policy.default is None else policy.default
    elif policy.minimum is not None:
        amount = _in_steps(max(asked, policy.minimum), policy.minimum, policy.step)
    else:
        # The first value that is enough; a larger request than all of them is refused below.
        amount = next((each for each in policy.values if each >= asked), asked)
    # The default needs no check: the API server has refused policies that their own default breaks.
    if amount == policy.default:
        return amount
    if policy.maximum is not None and amount > policy.maximum:
        return None
    if policy.step and policy.minimum is not None and _in_steps(amount, policy.minimum, policy.step) != amount:
        return None
    return None if policy.values and amount not in policy.values else amount


def _in_steps(amount: float, minimum: float, step: float | None) -> float:
    """Return the least multiple of ``step`` from ``minimum`` on that is enough."""
    if not step:
        return amount
    # In whole thousandths, in which quantities are read: a quotient of floats could be off by one step.
    over, each = round((amount - minimum) * 1000), round(step * 1000)
    return minimum + -(-over // each) * each / 1000.0
