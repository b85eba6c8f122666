"""Amounts and names in words of users."""

from __future__ import annotations

import pytest

from pumice.reasons.words import amount, per_unit, short_name, unit


@pytest.mark.parametrize(
    ("resource", "short", "plural", "of_two", "text"),
    [
        ("cpu", "CPU", "cores", 2000.0, "2 cores"),
        ("memory", "memory", "GiB", 2.0**31, "2 GiB"),
        ("pods", "pods", "pods", 2.0, "2 pods"),
        ("nvidia.com/gpu", "GPU", "GPUs", 2000.0, "2 GPUs"),
        ("example.com/qubits", "qubits", "qubits", 2000.0, "2 qubits"),
    ],
)
def test_resources_are_counted_as_people_do(resource: str, short: str, plural: str, of_two: float, text: str) -> None:
    assert (short_name(resource), unit(resource), amount(resource, of_two)) == (short, plural, text)
    assert of_two / per_unit(resource) == 2.0
