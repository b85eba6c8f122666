"""The end of a session: the phase of a PodGroup, its conditions, and what is written only where it differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.jobs import INQUEUE_PHASE
from pumice.framework.cycle.closing import close_session
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt, Failure
from pumice.framework.memo import Memo
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, resource, session
from pumice.volcano.status.closing import conditions, jobs_to_close

NOBODY = "tiers: []"


def in_state(state: str, name: str = "p") -> Any:
    """A pod of group g whose task is in this state."""
    where = {"Pending": "", "Unassigned": ""}.get(state, "n")
    phase = {"Bound": "Pending", "Releasing": "Running", "Unassigned": "Pending"}.get(state, state)
    leaving = 1.0 if state in ("Releasing", "Unassigned") else None
    return pod(name, "g", on=where, phase=phase, deletion=leaving)


def opened(states: str, minimum: int, phase: str = "Inqueue", **more: Any) -> Session:
    """One job whose tasks are in these states."""
    tasks = [in_state(state, f"p{i}") for i, state in enumerate(states.split())]
    status = more.pop("status", PodGroupStatus(phase))
    return session(cluster(node("n"), podgroup("g", minimum, status=status), tasks), NOBODY, **more)


def written(ssn: Session) -> PodGroupStatus | None:
    """The status that closing the session wants written, None when it is fine as it is."""
    groups = close_session(ssn).groups
    assert len(groups) <= 1
    return groups[0].status if groups else None


# -- phase


@pytest.mark.parametrize(
    ("states", "minimum", "unschedulable", "phase"),
    [
        pytest.param("Running Running", 2, False, "Running", id="as many as wanted run"),
        pytest.param("Running Running", 2, True, "Unknown", id="some run and the gang is incomplete"),
        pytest.param("Running Pending", 2, True, "Unknown", id="fewer run than wanted, and it is incomplete"),
        pytest.param("Running Pending", 2, False, "AS IT WAS", id="fewer run than wanted"),
        pytest.param("Bound Bound", 2, False, "Running", id="bound counts as scheduled"),
        pytest.param("Bound Bound", 2, True, "Running", id="incomplete says nothing while none runs"),
        pytest.param("Bound Succeeded", 2, False, "Running", id="one has ended"),
        pytest.param("Running Failed Failed", 3, False, "Running", id="failed ones count as scheduled"),
        pytest.param("Succeeded Failed", 2, False, "Completed", id="all have ended"),
        pytest.param("Succeeded Pending", 1, False, "Completed", id="all that were scheduled have ended"),
        pytest.param("Succeeded Pending", 2, False, "AS IT WAS", id="too few were scheduled"),
        pytest.param("Running Releasing", 2, False, "Running", id="leaving a node is being on one"),
        pytest.param("Releasing Succeeded", 2, False, "Running", id="leaving is not having ended"),
        pytest.param("Running Unassigned", 2, False, "AS IT WAS", id="deleted before it had a node"),
        pytest.param("Pending Pending", 2, False, "AS IT WAS", id="nothing runs"),
        pytest.param("Pending", 0, False, "Completed", id="no minimum: none of none"),
        pytest.param("Unknown", 1, False, "AS IT WAS", id="lost from sight"),
    ],
)
@pytest.mark.parametrize(
    ("before", "after"),
    [("Pending", "Pending"), ("Inqueue", "Inqueue"), ("Running", "Pending"), ("Unknown", "Pending")],
)
def test_phase(states: str, minimum: int, unschedulable: bool, phase: str, before: str, after: str) -> None:
    """``after`` is the phase where the tasks do not decide: admitted stays admitted, anything else waits."""
    ssn = opened(states, minimum, before)
    if unschedulable:
        conditions(ssn).set(0, "Unschedulable", "NotEnoughResources", "")
    found = written(ssn)
    assert (found.phase if found else before) == (after if phase == "AS IT WAS" else phase)


def test_admission_in_this_session_counts() -> None:
    ssn = opened("Pending", 1, "Pending")
    ssn.journal.put(ssn.tables.jobs["phase"], 0, INQUEUE_PHASE)
    assert written(ssn) == PodGroupStatus("Inqueue")


def test_what_was_bound_in_this_session_is_not_scheduled_yet() -> None:
    ssn = opened("Pending Pending", 2)
    stmt = ssn.statement()
    stmt.allocate([0, 1], [0, 0])
    stmt.commit()
    assert written(ssn) is None, "Inqueue as before: the next session may see them bound"


def test_numbers_of_tasks() -> None:
    assert written(opened("Running Running Succeeded Failed Failed Failed Pending", 2)) == PodGroupStatus(
        "Running", (), running=2, succeeded=1, failed=3
    )


# -- when to write

STATUS = PodGroupStatus("Running", (), running=1)


@pytest.mark.parametrize(
    ("status", "differs"),
    [
        pytest.param(STATUS, False, id="the same"),
        pytest.param(PodGroupStatus("Inqueue", (), running=1), True, id="phase"),
        pytest.param(PodGroupStatus("Running", (), running=2), True, id="running"),
        pytest.param(PodGroupStatus("Running", (), running=1, succeeded=1), True, id="succeeded"),
        pytest.param(PodGroupStatus("Running", (), running=1, failed=1), True, id="failed"),
        pytest.param(
            PodGroupStatus("Running", (PodGroupCondition("Other", "True"),), running=1),
            False,
            id="conditions of others are left alone",
        ),
    ],
)
def test_only_what_differs_is_written(status: PodGroupStatus, differs: bool) -> None:
    found = written(opened("Running", 1, status=status))
    assert (found is not None) is differs
    assert found in (None, STATUS)


SAID = PodGroupCondition("Scheduled", "True", "ready", "all is well", "an earlier session", 5.0)


@pytest.mark.parametrize(
    ("kind", "reason", "message", "differs"),
    [
        pytest.param("Scheduled", "ready", "all is well", False, id="the same: its time and transition do not count"),
        pytest.param("Scheduled", "ready", "all is very well", True, id="message"),
        pytest.param("Scheduled", "steady", "all is well", True, id="reason"),
        pytest.param("Unschedulable", "ready", "all is well", True, id="type"),
    ],
)
def test_a_condition_is_written_when_it_says_something_new(kind: str, reason: str, message: str, differs: bool) -> None:
    ssn = opened("Pending", 1, status=PodGroupStatus("Inqueue", (SAID,)), now=70.0)
    conditions(ssn).set(0, kind, reason, message)
    assert (written(ssn) is not None) is differs


def test_a_condition_that_was_false_is_written() -> None:
    was = PodGroupStatus("Inqueue", (PodGroupCondition("Scheduled", "False", "ready", "all is well"),))
    ssn = opened("Pending", 1, status=was)
    conditions(ssn).set(0, "Scheduled", "ready", "all is well")
    assert written(ssn) is not None


OTHER = PodGroupCondition("Other", "False", "by somebody else")


@pytest.mark.parametrize(
    ("before", "fresh", "after"),
    [
        pytest.param("", "Scheduled", "Scheduled*", id="the first"),
        pytest.param("Scheduled Other", "Scheduled", "Scheduled* Other", id="in place of the old one"),
        pytest.param("Other Scheduled", "Scheduled", "Other Scheduled*", id="wherever that is"),
        pytest.param("Other", "Unschedulable", "Other Unschedulable*", id="a new type comes last"),
        pytest.param(
            "Unschedulable Other",
            "Scheduled Unschedulable",
            "Unschedulable* Other Scheduled*",
            id="one replaced, one new",
        ),
        pytest.param("Unschedulable", "Scheduled", "Unschedulable Scheduled*", id="what is not said again stays"),
    ],
)
def test_conditions_are_merged(before: str, fresh: str, after: str) -> None:
    """``*`` marks those of this session."""
    status = PodGroupStatus("Inqueue", tuple(PodGroupCondition(kind, "True", "old") for kind in before.split()))
    ssn = opened("Pending", 1, status=status, now=70.0)
    for kind in fresh.split():
        conditions(ssn).set(0, kind, "new", f"{kind} now")
    uid, found = ssn.uid, written(ssn)
    assert found is not None
    names = [condition.type + "*" * (condition.reason == "new") for condition in found.conditions]
    assert " ".join(names) == after
    ours = next(condition for condition in found.conditions if condition.reason == "new")
    assert ours == PodGroupCondition(ours.type, "True", "new", f"{ours.type} now", uid, 70.0)


# -- which jobs are looked at


POLICY = policy(NOBODY, actions="allocate")


class Cycles:
    """Sessions on one store, with one memory. Three jobs: one waits, one runs, one runs and says so."""

    def __init__(self) -> None:
        groups = [
            podgroup("waits", phase="Inqueue"),
            podgroup("runs", phase="Inqueue", creation=1.0),
            podgroup("says-so", status=PodGroupStatus("Running", (), running=1), creation=2.0),
        ]
        members = [pods("waits", 1), pods("runs", 1, on="n"), pods("says-so", 1, on="n")]
        self.store: Store = cluster(node("n"), groups, *members)
        self.memo = Memo()

    def open(self) -> Session:
        ssn = Session(self.store.snapshot(), POLICY, 0.0, ListPlanner(), self.memo)
        ssn.open()
        return ssn


def to_close(ssn: Session) -> str:
    return " ".join(ssn.tables.jobs.uids[row].removeprefix("ns/") for row in jobs_to_close(ssn))


def row_of(ssn: Session, name: str) -> int:
    return list(ssn.tables.jobs.uids).index(f"ns/{name}")


def test_a_job_whose_status_is_in_order_is_not_looked_at_again() -> None:
    cycles = Cycles()
    ssn = cycles.open()
    assert to_close(ssn) == "waits runs says-so", "nothing is known at first"
    assert [update.job for update in close_session(ssn).groups] == ["ns/runs"]
    ssn = cycles.open()
    assert to_close(ssn) == "runs", "what should be written has not been seen written"
    cycles.store.apply(Seen(podgroup("runs", status=PodGroupStatus("Running", (), running=1), creation=1.0)))
    ssn = cycles.open()
    assert to_close(ssn) == "runs", "it changed"
    assert close_session(ssn).groups == ()
    assert to_close(cycles.open()) == ""


@pytest.mark.parametrize(
    ("comes", "updates"),
    [
        pytest.param({}, 0, id="what was handed out"),
        pytest.param({"status": PodGroupStatus("Running", (), running=3)}, 1, id="another status"),
        pytest.param({"minimum": 3}, 1, id="the status, and another minimum"),
        pytest.param({"status": PodGroupStatus("Inqueue", (), running=2)}, 1, id="another phase"),
    ],
)
def test_a_status_that_was_written_is_looked_at_once_more(comes: dict[str, Any], updates: int) -> None:
    cycles = Cycles()
    cycles.store.apply(Seen(podgroup("runs", status=PodGroupStatus("Running", (), running=1), creation=1.0)))
    close_session(cycles.open())
    cycles.store.apply(Seen(pod("says-so-1", "says-so", on="n")))
    (update,) = close_session(cycles.open()).groups
    assert (update.job, update.status.running) == ("ns/says-so", 2)
    found = {"status": update.status, "minimum": 1, **comes}
    cycles.store.apply(Seen(podgroup("says-so", **found, creation=2.0)))
    ssn = cycles.open()
    assert to_close(ssn) == "says-so"
    assert len(close_session(ssn).groups) == updates
    assert to_close(cycles.open()) == ("says-so" if updates else "")


def moved(ssn: Session) -> None:
    ssn.statement().allocate(ssn.tables.jobs.tasks[row_of(ssn, "waits")].tolist(), [0])


def tried(ssn: Session) -> None:
    ssn.trace.take(row_of(ssn, "waits"), Attempt())


def failed(ssn: Session) -> None:
    ssn.trace.fail(np.array([row_of(ssn, "waits")]), Failure(5, None, (), (), False, (), (), False))


def said(ssn: Session) -> None:
    conditions(ssn).set(row_of(ssn, "waits"), "Unschedulable", "NotEnoughResources", "")


@pytest.mark.parametrize("happens", [moved, tried, failed, said])
def test_a_job_of_which_there_is_news_is_looked_at(happens: Any) -> None:
    cycles = Cycles()
    close_session(cycles.open())
    ssn = cycles.open()
    happens(ssn)
    assert to_close(ssn) == "waits runs"


def test_a_job_that_fails_as_it_did_when_it_was_in_order_is_no_news() -> None:
    cycles = Cycles()
    for _ in range(2):
        ssn = cycles.open()
        failed(ssn)
        looked_at = to_close(ssn)
        close_session(ssn)
    assert looked_at == "runs"
    assert to_close(cycles.open()) == "waits runs", "it does not fail now"


def test_a_status_stays_in_order_whatever_plugins_keep_of_the_job() -> None:
    """And whether or not anything waits: where nothing does, plugins keep nothing."""
    runs = podgroup("runs", status=PodGroupStatus("Running", (), running=1))
    state = cluster(node("n", cpu=4), runs, pods("runs", 1, on="n", phase="Running"))
    memo, drf = Memo(), policy("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: drf}]}]")

    def looked_at() -> str:
        """What the next session looks at; what it writes is seen written."""
        ssn = Session(state.snapshot(), drf, 0.0, ListPlanner(), memo)
        ssn.open()
        found, groups = to_close(ssn), {group.key: group for group in ssn.tables.jobs.groups if group is not None}
        for update in close_session(ssn).groups:
            state.apply(Seen(replace(groups[update.job], status=update.status)))
        return found

    assert [looked_at(), looked_at(), looked_at()] == ["runs", "runs", ""], "nothing waits"
    for each in (podgroup("new", phase="Inqueue", creation=1.0), pod("new", "new", 9)):
        state.apply(Seen(each))
    assert looked_at() == "new", "the share of the other is in a column now"
    for kind, key in ((Pod, "ns/new"), (PodGroup, "ns/new")):
        state.apply(Gone(kind, key))
    assert looked_at() == "", "nothing waits again"


def test_updates_come_by_job() -> None:
    names = ("c", "a", "b")
    groups = [podgroup(name, creation=float(i), phase="Inqueue") for i, name in enumerate(names)]
    state = cluster(node("n"), groups, [p for name in names for p in pods(name, 1, on="n")])
    assert [update.job for update in close_session(session(state, NOBODY)).groups] == ["ns/a", "ns/b", "ns/c"]


def test_a_job_without_a_queue_has_no_status() -> None:
    ssn = session(cluster(node("n"), podgroup("g", queue="gone"), pods("g", 1, on="n")), NOBODY)
    assert written(ssn) is None


# -- queues

HELD = resource(1, "1Gi", pods=1)


def queues_after(*queues: Any, **of: str) -> dict[str, float]:
    """Cores in status.allocated of the queues that are written; ``of``: the queue of a job with one running pod."""
    jobs = [[podgroup(name, queue=where), pods(name, 1, on="n")] for name, where in of.items()]
    found = close_session(session(cluster(node("n"), *queues, *(o for job in jobs for o in job)), NOBODY)).queues
    return {name: amount.milli_cpu / 1000 for name, amount in found.items()}


def test_what_queues_hold_is_followed_from_session_to_session() -> None:
    """Jobs come, get pods, change their queues and go."""
    store, memo, found = cluster(node("n", cpu=9), queue("a"), queue("b")), Memo(), []
    for events in (
        [],
        [Seen(podgroup("g", queue="a"))],
        [Seen(each) for each in pods("g", 2, on="n")],
        [Seen(podgroup("g", queue="b"))],
        [Gone(Pod, "ns/g-0")],
        [Gone(PodGroup, "ns/g")],
    ):
        store.apply_all(events)
        ssn = Session(store.snapshot(), POLICY, 0.0, ListPlanner(), memo)
        ssn.open()
        queues = close_session(ssn).queues
        found.append([queues[name].milli_cpu / 1000 for name in "ab"])
    assert found == [[0, 0], [0, 0], [2, 0], [0, 2], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("queues", "of", "cores"),
    [
        pytest.param([queue("q")], {"a": "q", "b": "q"}, {"q": 2}, id="jobs of a queue add up"),
        pytest.param([queue("p"), queue("q", parent="p")], {"a": "q"}, {"p": 0, "q": 1}, id="no root: no parents"),
        pytest.param(
            [queue("root"), queue("p"), queue("q", parent="p"), queue("r")],
            {"a": "q", "b": "r"},
            {"root": 2, "p": 1, "q": 1, "r": 1},
            id="every ancestor, root being the last",
        ),
        pytest.param([queue("root"), queue("q")], {"a": "root", "b": "q"}, {"root": 3, "q": 1}, id="root's own twice"),
    ],
)
def test_what_queues_hold(queues: list[Any], of: dict[str, str], cores: dict[str, float]) -> None:
    assert queues_after(*queues, **of) == cores


@pytest.mark.parametrize(
    ("stated", "differs"),
    [
        pytest.param(None, True, id="none yet"),
        pytest.param(HELD, False, id="as it is"),
        pytest.param(resource(2, "1Gi", pods=1), True, id="another amount"),
        pytest.param(resource(1, "1Gi"), True, id="another set of names"),
    ],
)
def test_a_queue_is_written_when_it_differs(stated: Any, differs: bool) -> None:
    assert bool(queues_after(queue("q", allocated=stated), a="q")) is differs


@pytest.mark.parametrize(
    ("state", "holds"),
    [
        pytest.param("Pending", False, id="pending"),
        pytest.param("Bound", True, id="bound"),
        pytest.param("Running", True, id="running"),
        pytest.param("Releasing", False, id="releasing"),
        pytest.param("Succeeded", False, id="succeeded"),
        pytest.param("Failed", False, id="failed"),
        pytest.param("Unknown", False, id="unknown"),
    ],
)
def test_which_tasks_hold(state: str, holds: bool) -> None:
    ssn = session(cluster(node("n"), podgroup("g"), in_state(state)), NOBODY)
    (amount,) = close_session(ssn).queues.values()
    assert (amount.milli_cpu, amount.scalars) == ((1000, {"pods": 1}) if holds else (0, {}))
