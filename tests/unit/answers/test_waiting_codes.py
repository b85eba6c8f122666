"""Equal jobs share a code, so that what a cycle costs does not grow with the number of equal jobs that wait."""

from __future__ import annotations

import pytest

from pumice.answers.codes import Code, code_of
from pumice.answers.waiting_codes import waiting_codes
from pumice.reasons.blockers import Blockers
from pumice.runtime.one_cycle import schedule_once
from pumice.testing.build import node, podgroup, pods, policy, queue

#: No action tries a job.
ADMITS = 'actions: "enqueue"\ntiers: [{plugins: [{name: gang}]}]\n'


def test_the_blockers_of_equal_jobs_that_were_not_tried_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {f"small{n}": "1" for n in range(10)} | {f"large{n}": "9" for n in range(10)}
    gangs = [
        each for name, cpu in sizes.items() for each in (podgroup(name, 2, phase="Inqueue"), *pods(name, 2, cpu=cpu))
    ]
    outcome = schedule_once([node("n1", cpu="4"), queue("default"), *gangs], policy(ADMITS), 1_000.0).outcome
    asked: list[int] = []
    nearest = Blockers.nearest
    monkeypatch.setattr(Blockers, "nearest", lambda self, job: (asked.append(job), nearest(self, job))[1])
    found = dict(waiting_codes(outcome))
    assert len(found) == 20 and len(asked) == 2
    of_jobs = Blockers(outcome)
    assert found == {row: code_of(nearest(of_jobs, row)) for row in found}
    assert sorted(found.values()).count(Code.ROOM) == 10
