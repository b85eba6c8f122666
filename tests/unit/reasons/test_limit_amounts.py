"""Limits that a plugin gave without amounts, with those of the end of the cycle."""

from __future__ import annotations

import random

import pytest

from pumice.answers.world import Trials
from pumice.model.blockers import CAPACITY, RECLAIM, CannotEvict, QueueLimit
from pumice.reasons.blockers import Blockers
from pumice.reasons.sentences import sentence
from tests.properties.answers.answer_worlds import random_world


@pytest.mark.parametrize(
    ("seed", "job", "kind", "text"),
    [
        (70001, "ns/j1", CAPACITY, "queue q0: 0 of 4 cores used, asks for 8"),
        (70002, "ns/j2", CAPACITY, "the cluster has 2 GPUs, it asks for 4"),
        (
            70013,
            "ns/j0",
            CAPACITY,
            "queue q0 could take no more when the job was tried; at the end of the cycle 0 of 29 GiB used, asks for 16",
        ),
        (
            70004,
            "ns/j4",
            RECLAIM,
            "queue q0: 8 of 0 deserved cores and 1 of 0 deserved GiB used, asks for 4 cores and 2 GiB",
        ),
    ],
)
def test_a_limit_says_what_is_used_asked_for_and_allowed(seed: int, job: str, kind: str, text: str) -> None:
    trial = Trials(random_world(random.Random(seed), "volcano"), 0).base
    found = Blockers(trial.outcome)
    row = next(row for row in found.waiting.tolist() if trial.outcome.tables.jobs.uids[row] == job)
    limits = [each.because if isinstance(each, CannotEvict) else each for each in found.of(row)]
    said = [sentence(each) for each in limits if isinstance(each, QueueLimit) and each.kind == kind]
    assert text in said
