"""What jobs and sub-jobs lack: without policies a sub-job lacks what its job does."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano.gangs.readiness import job_missing, job_pipelined, job_ready, sub_missing, sub_pipelined

GANG = "tiers: [{plugins: [{name: gang}]}]"
PARTS = SubGroupPolicy("part", match_label_keys=("part",), sub_group_size=2)


def opened(runs: int, waits: int, minimum: int) -> Session:
    members = [pods("g", runs, on="n"), pods("g", waits, first=runs)]
    return session(cluster(node("n"), podgroup("g", minimum), *members), GANG)


@pytest.mark.parametrize(
    ("runs", "minimum", "missing"),
    [
        pytest.param(0, 2, 2, id="nothing runs"),
        pytest.param(1, 3, 2, id="some do"),
        pytest.param(2, 2, 0, id="enough do"),
    ],
)
def test_what_a_job_lacks(runs: int, minimum: int, missing: int) -> None:
    ssn = opened(runs, 2, minimum)
    (sub,) = ssn.tables.jobs.subs[0]
    assert (job_missing(ssn, 0), job_ready(ssn, 0), sub_missing(ssn, sub)) == (missing, missing == 0, missing)


@pytest.mark.parametrize(("promised", "would_be"), [(0, False), (1, False), (2, True)])
def test_what_is_promised_counts_for_later(promised: int, would_be: bool) -> None:
    ssn = opened(0, 2, 2)
    if promised:
        ssn.statement().pipeline(list(range(promised)), [0] * promised)
    (sub,) = ssn.tables.jobs.subs[0]
    assert (job_pipelined(ssn, 0), sub_pipelined(ssn, sub)) == (would_be, would_be)
    assert not job_ready(ssn, 0)


def test_a_sub_job_of_a_policy_is_asked_for_itself() -> None:
    def member(name: str, part: str, **more: Any) -> Any:
        return pod(name, "g", labels={"part": part}, **more)

    members = [member("a-0", "a", on="n"), member("a-1", "a", on="n"), member("b-0", "b"), member("b-1", "b")]
    ssn = session(cluster(node("n"), podgroup("g", 4, sub_groups=[PARTS]), members), GANG)
    subs = ssn.tables.jobs.subs[0]
    assert job_missing(ssn, 0) == 2
    assert sorted(sub_missing(ssn, sub) for sub in subs if len(ssn.tables.subs.tasks[sub])) == [0, 2]
    assert sorted(sub_pipelined(ssn, sub) for sub in subs if len(ssn.tables.subs.tasks[sub])) == [False, True]
