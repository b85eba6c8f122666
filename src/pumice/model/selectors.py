"""Match labels against selectors.

Source: Kubernetes ``labels.Selector`` and ``nodeaffinity``. NotIn and DoesNotExist match an absent label; Gt and Lt
compare integers of 64 bits. An unknown operator matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pumice.model.pod import LabelSelector, Requirement

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Return True if every requirement holds. An empty selector matches everything."""
    return all(holds(requirement, labels) for requirement in selector.requirements)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Return True if one requirement holds."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compares(value, requirement)
        # A term of a later version of Kubernetes could mean anything, so it matches nothing.
        case _:
            return False


def _compares(value: str, requirement: Requirement) -> bool:
    """Return True if an integer label is above (Gt) or below (Lt) the value of the requirement."""
    # The API server refuses such a term in a pod, but a file may contain it.
    if len(requirement.values) != 1:
        return False
    found, bound = _integer(value), _integer(requirement.values[0])
    if found is None or bound is None:
        return False
    return found > bound if requirement.operator == "Gt" else found < bound


def _integer(text: str) -> int | None:
    """Return an integer of 64 bits, None for other texts."""
    # At most 19 digits: parsing a long number is expensive, and labels come from users.
    match = _INTEGER.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
