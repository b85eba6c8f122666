"""What a gang counts as: which task states make it ready, hold resources, and so on, and what follows from the sums."""

from __future__ import annotations

import pytest

from pumice.columns.counting import HELD, READY, SCHEDULED, VALID
from pumice.columns.dtypes import I32
from pumice.columns.views import Job, SubJob, Task
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, pod, podgroup, session


@pytest.mark.parametrize(
    ("mask", "states"),
    [
        pytest.param(READY, "Allocated Binding Bound Running Succeeded", id="ready"),
        pytest.param(HELD, "Allocated Binding Bound Running", id="held"),
        pytest.param(VALID, "Pending Allocated Pipelined Binding Bound Running Succeeded", id="valid"),
        pytest.param(SCHEDULED, "Bound Running Succeeded Failed", id="scheduled"),
    ],
)
def test_which_states_count(mask: I32, states: str) -> None:
    assert [TaskStatus(s).label for s in mask.nonzero()[0]] == states.split()
    assert set(mask.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("states", "minimum", "missing", "says"),
    [
        pytest.param("Pending Pending", 2, 2, "starving", id="all wait"),
        pytest.param("Running Pending", 2, 1, "starving", id="one waits"),
        pytest.param("Running Running", 2, 0, "ready pipelined", id="all run"),
        pytest.param("Running Running", 1, -1, "ready pipelined", id="more than enough run"),
        pytest.param("Running Pipelined", 2, 1, "pipelined", id="a promise makes it pipelined, not ready"),
        pytest.param("Running Succeeded", 2, 0, "ready pipelined", id="one has ended well"),
        pytest.param("Running Failed", 2, 1, "starving", id="one has failed"),
        pytest.param("Running Releasing", 2, 1, "starving", id="one is leaving"),
        pytest.param("Running Nothing", 2, 0, "ready pipelined starving", id="one asks for nothing"),
        pytest.param("Pending", 0, 0, "ready pipelined", id="no minimum"),
    ],
)
def test_readiness(states: str, minimum: int, missing: int, says: str) -> None:
    """Counts of the job, which are those of its only sub-job. ``Nothing``: a pending task without request."""
    tasks = []
    for i, state in enumerate(states.split()):
        waits = state in ("Pending", "Pipelined", "Nothing")
        size = {"cpu": 0, "memory": 0} if state == "Nothing" else {}
        phase = {"Releasing": "Running"}.get(state, "Pending" if waits else state)
        leaving = 1.0 if state == "Releasing" else None
        tasks.append(pod(f"p{i}", "g", on="" if waits else "n", phase=phase, deletion=leaving, **size))
    ssn = session(cluster(node("n"), podgroup("g", minimum), tasks), "tiers: []")
    if "Pipelined" in states:
        ssn.statement().pipeline([states.split().index("Pipelined")], [0])
    job = Job(ssn.tables, 0)
    for counters in (job, SubJob(ssn.tables, job.sub_jobs[0])):
        found = {"ready": counters.is_ready, "pipelined": counters.is_pipelined, "starving": counters.is_starving}
        assert [word for word, holds in found.items() if holds] == says.split()
        assert counters.missing_count == missing


def test_handles_are_equal_by_row() -> None:
    ssn = session(cluster(node("n"), podgroup("g"), pod("p", "g")), "tiers: []")
    one, again, other = Task(ssn.tables, 0), Task(ssn.tables, 0), Task(ssn.tables, 1)
    assert one == again and hash(one) == hash(again) and one != other
    assert one != Job(ssn.tables, 0), "a task is no job"
    assert (repr(one), repr(one.job)) == ("Task('ns/p')", "Job('ns/g')")
