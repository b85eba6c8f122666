"""Does a selector match a set of labels?

Source: Kubernetes ``labels.Selector`` and ``nodeaffinity``: NotIn and DoesNotExist match a label that is absent; Gt and
Lt compare integers. An operator that nobody knows matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pumice.model.pod import LabelSelector, Requirement

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether every requirement holds. An empty selector matches everything."""
    return all(holds(requirement, labels) for requirement in selector.requirements)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds."""
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
        case _:
            return False


def _compares(value: str, requirement: Requirement) -> bool:
    texts = (value, *requirement.values)
    if len(texts) != 2 or not all(_INTEGER.fullmatch(text) for text in texts):
        return False
    found, bound = int(texts[0]), int(texts[1])
    return found > bound if requirement.operator == "Gt" else found < bound
