"""Amounts, names and sentences in words of users."""

from __future__ import annotations

import pytest

from pumice.model.blockers import Blocker, GangIncomplete, KeptApart, Shortage
from pumice.reasons.sentences import sentence
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


@pytest.mark.parametrize(
    ("blocker", "text"),
    [
        (GangIncomplete("", 0, 1), "it has no pod"),
        (GangIncomplete("ps", 0, 1), "it has no pod of role ps"),
        (GangIncomplete("", 2, 3), "2 of the 3 pods of minMember exist"),
        (
            Shortage("cpu", 8_000.0, 1, 0.0, 0.0, nodes=1, looked_at=4),
            "1 of 4 nodes has too little cpu: it asks for 8 cores a pod",
        ),
        (
            Shortage("memory", 2.0**31, 1, 0.0, 0.0, nodes=3, looked_at=4),
            "3 of 4 nodes have too little memory: it asks for 2 GiB of memory a pod",
        ),
        (
            KeptApart("kubernetes.io/hostname", 1, "app=x"),
            "one node has a pod with app=x, near which it may not run",
        ),
        (
            KeptApart("zone", 2, "app=x", by_them=True),
            "each of 2 zones has a pod that may not be near one with app=x",
        ),
    ],
)
def test_a_sentence_agrees_with_its_count_and_says_what_is_asked_for(blocker: Blocker, text: str) -> None:
    assert sentence(blocker) == text
