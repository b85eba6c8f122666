"""Why a gang waits, in numbers: which queue has no more to give, or how many nodes lack what."""

from __future__ import annotations

import pytest

from pumice.kai.engine.tree_order import QueueTree
from pumice.kai.reasons import NON_PREEMPTIBLE_OVER_QUOTA, OVER_LIMIT, POD_SCHEDULING_ERRORS, QUEUE_DOES_NOT_EXIST
from pumice.kai.words import Explanation, Waits, Words
from pumice.model.blockers import (
    LIMIT,
    NO_PARENT,
    QUOTA,
    TASK,
    BadQueue,
    Blocker,
    NoRoom,
    QueueLimit,
    Refused,
    SearchCut,
)
from pumice.model.workloads.gang import SubGroup
from pumice.reasons.blockers import Blockers
from pumice.reasons.sentences import sentence
from tests.unit.kai.cluster import cycle, job, node, opened, queue, store

QUEUES = queue("dept", 6.0, limit=8.0), queue("team", 2.0, "dept", limit=4.0), queue("other", 4.0, "dept")
FAST = {"preemptibility": "non-preemptible"}


@pytest.mark.parametrize(
    ("of", "gpus", "why", "message"),
    [
        pytest.param(
            "team",
            2,
            LIMIT,
            "team has reached its limit of GPUs: the limit is 4, 3 allocated, the workload asks for 2",
            id="its own limit",
        ),
        pytest.param(
            "other",
            6,
            LIMIT,
            "dept has reached its limit of GPUs: the limit is 8, 3 allocated, the workload asks for 6",
            id="that of the queue above",
        ),
        pytest.param(
            "team", 1, LIMIT, "queue team had no more to give when the workload was tried", id="none any more"
        ),
        pytest.param(
            "team",
            2,
            QUOTA,
            "a workload that is not preemptible must stay within the quota: that of team is 2 GPUs, 1 allocated to such"
            " workloads, and it asks for 2; a preemptible one may go over the quota",
            id="the quota counts those alone that cannot be preempted",
        ),
    ],
)
def test_which_queue_has_no_more_to_give(of: str, gpus: int, why: str, message: str) -> None:
    runs = job("fast", "team", ["a"], 1, **FAST), job("runs", "team", ["a"], 2)
    found = reports(of, gpus, QueueLimit(of, why), *runs)
    assert found == Explanation({LIMIT: OVER_LIMIT, QUOTA: NON_PREEMPTIBLE_OVER_QUOTA}[why], message)


def reports(of: str, gpus: int, why: Blocker, *others: object) -> Explanation:
    """Of a job of one that waits."""
    ssn = opened(store(node("a", 8), node("b", 2), QUEUES, *others, job("new", of, [""], gpus)))  # type: ignore[arg-type]
    row = list(ssn.tables.jobs.uids).index("ns/new")
    return Words(ssn.tables, QueueTree(ssn.tables)).of(row, Waits(why))


def test_a_queue_that_is_not_there_is_named() -> None:
    why = BadQueue("team", NO_PARENT, "gone")
    assert reports("team", 1, why) == Explanation(
        QUEUE_DOES_NOT_EXIST, "queue team has a parent that is not there: gone"
    )


@pytest.mark.parametrize(
    ("tasks", "gpus", "why", "message"),
    [
        pytest.param(1, 9, NoRoom(), "2 node(s) didn't have enough nvidia.com/gpu.", id="too large for all"),
        pytest.param(
            1,
            4,
            Refused(TASK, "tainted"),
            "1 node(s) didn't have enough nvidia.com/gpu; 1 node(s) are out: tainted.",
            id="and out",
        ),
        pytest.param(
            3,
            4,
            NoRoom(),
            "1 node(s) didn't have enough nvidia.com/gpu; 1 node(s) have room for it, but not for all 3 pods that must"
            " start together.",
            id="room for one of them",
        ),
    ],
)
def test_how_many_nodes_lack_what(tasks: int, gpus: int, why: Blocker, message: str) -> None:
    ssn = opened(store(node("a", 8), node("b", 2), QUEUES, job("new", "team", [""] * tasks, gpus)))
    found = Words(ssn.tables, QueueTree(ssn.tables)).of(0, Waits(why))
    head = "Resources were not found for pod ns/new-0 due to: 0/2 nodes are available: "
    assert found == Explanation(POD_SCHEDULING_ERRORS, head + message)


@pytest.mark.parametrize(
    ("why", "more"),
    [
        pytest.param(Waits(NoRoom()), "", id="nodes"),
        pytest.param(
            Waits(NoRoom(), (SearchCut("reclaim", 7),)),
            " Not all was tried: reclaim was cut off after 7 steps.",
            id="a search that was cut",
        ),
    ],
)
def test_the_message_of_each_equal_job_names_its_own_pod(why: Waits, more: str) -> None:
    jobs = [job(name, "team", [""] * 2, gpus) for name, gpus in (("x", 9), ("y", 9), ("z", 10))]
    ssn = opened(store(node("a", 8), QUEUES, *jobs))
    signatures = ssn.tables.jobs.signature.tolist()
    assert signatures[0] == signatures[1] != signatures[2]
    words = Words(ssn.tables, QueueTree(ssn.tables))
    said = [words.of(row, why).message for row in range(3)]
    short = "0/1 nodes are available: 1 node(s) didn't have enough nvidia.com/gpu."
    assert said == [f"Resources were not found for pod ns/{name}-0 due to: {short}{more}" for name in "xyz"]


def test_the_first_pod_that_waits_is_named_where_others_run() -> None:
    jobs = [job("x", "team", ["a", "", ""], 1), job("y", "team", ["", "", "a"], 1), job("z", "team", [""] * 3, 9)]
    ssn = opened(store(node("a", 2), QUEUES, *jobs))
    words = Words(ssn.tables, QueueTree(ssn.tables))
    said = [words.of(row, Waits(NoRoom())).message.partition(" due to:")[0].rpartition("/")[2] for row in range(3)]
    assert said == ["x-1", "y-0", "z-0"]


def test_equal_jobs_share_a_message_that_names_no_pod() -> None:
    jobs = [job(name, "team", [""], gpus) for name, gpus in (("x", 9), ("y", 9), ("z", 10))]
    ssn = opened(store(node("a", 8), QUEUES, *jobs))
    words = Words(ssn.tables, QueueTree(ssn.tables))
    x, y, z = (words.of(row, Waits(QueueLimit("team", LIMIT))) for row in range(3))
    assert x == y != z


def test_a_gang_says_how_many_of_its_pods_fit() -> None:
    """The number is that before the first pod without a place; equal gangs share the text, which names no pod."""
    ran = cycle(store(node("n", 5), queue("q"), *(job(name, "q", [""] * 3, 2) for name in "xy")))
    texts = {update.status.scheduling[0].message for update in ran.outcome.groups}
    head = (
        "Resources were found for 2 pods while 3 are required for gang scheduling. Additional pods cannot be scheduled"
    )
    assert texts == {
        f"{head} due to: 0/1 nodes are available: 1 node(s) have room for it, but not for all 3 pods that must start"
        " together."
    }


def test_a_sub_group_says_how_many_of_its_pods_fit() -> None:
    """Of a sub-group that needs one pod too, if another needs several; and the hint names the sub-group."""
    parts = job("x", "q", ["/a", "/b", "/b"], 2, sub_groups=[SubGroup("a", 1), SubGroup("b", 2)])
    ran = cycle(store(node("n", 5), queue("q"), parts))
    (update,) = ran.outcome.groups
    assert update.status.scheduling[0].message == (
        "Resources were found for 1 pods from all sub-groups while sub-group b requires 2 pods for gang scheduling."
        " Additional pods cannot be scheduled in this sub-group due to: 0/1 nodes are available: 1 node(s) have room"
        " for it, but not for all pods that must start together."
    )
    blockers = Blockers(ran.outcome)
    nearest = sentence(blockers.nearest(int(blockers.waiting[0])))
    assert nearest == "1 of 2 pods of sub-group b fit; the other one asks for 2 GPUs, and n has 1 free"
