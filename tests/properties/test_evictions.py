"""preempt and reclaim against the slow and plain way: one node and one victim at a time, nothing kept, nothing refuted
beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.columns.nodes import FUTURE
from pumice.columns.rows import Candidates, NodeRows, TaskRows
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Job, Queue, Task, TaskClass
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.memo import Memo
from pumice.framework.plugin import points as shared
from pumice.framework.plugin.filter_result import Code
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Gone, Object
from pumice.model.pod import Affinity, LabelSelector, Pod, PodAffinityTerm, Requirement
from pumice.model.queue import PriorityClass
from pumice.model.status import TaskStatus
from pumice.reasons.nearest import NearestBlockers
from pumice.testing.build import Ran, cluster, node, pod, podgroup, policy, queue, run
from pumice.volcano import points
from pumice.volcano.eviction.candidates import evictable
from pumice.volcano.eviction.victim_order import eviction_order
from pumice.volcano.gangs.attempt import discarded
from pumice.volcano.gangs.readiness import job_pipelined
from tests.properties.worlds import groups_of, pods_of

CONF = """
actions: "allocate, ACTION"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
ONE_TIER = """
actions: "allocate, ACTION"
tiers:
- plugins: [{name: gang}, {name: drf}, {name: predicates}, {name: proportion}]
"""


# -- clusters ----------------------------------------------------------------------------------------------------------


@st.composite
def crowded(draw: st.DrawFn) -> list[Object]:
    """Few nodes that are nearly full, and gangs of other priorities and queues that wait."""
    sizes = [draw(st.integers(2, 6)) for _ in range(draw(st.integers(1, 5)))]
    objects: list[Object] = [PriorityClass("low", 1), PriorityClass("high", 9)]
    objects += [queue(f"q{i}", draw(st.integers(1, 3)), reclaimable=draw(st.integers(0, 4)) > 0) for i in range(2)]
    objects += [node(f"n{i}", cpu, pods=draw(st.sampled_from([3, 110]))) for i, cpu in enumerate(sizes)]
    left = dict(enumerate(sizes))
    for number in range(draw(st.integers(2, 7))):
        name, cpu, count = f"j{number}", draw(st.integers(1, 2)), draw(st.integers(1, 4))
        running = draw(st.integers(0, 2)) > 0
        level = draw(st.sampled_from(["low", "low", "high"] if running else ["low", "high", "high"]))
        of, minimum = draw(st.sampled_from(["q0", "q1"])), draw(st.integers(0, count))
        objects.append(podgroup(name, minimum, of, priority_class=level, phase="Inqueue", creation=float(number)))
        for i in range(count):
            where = next((n for n, room in left.items() if room >= cpu), -1) if running else -1
            if where >= 0:
                left[where] -= cpu
            objects.append(draw(member(f"{name}-t-{i}", name, cpu, f"n{where}" if where >= 0 else "", level)))
    return objects


@st.composite
def member(draw: st.DrawFn, name: str, group: str, cpu: int, on: str, level: str) -> Pod:
    shy = Affinity(
        anti_required=(
            PodAffinityTerm("kubernetes.io/hostname", LabelSelector((Requirement("app", "In", ("b",)),)), ("ns",)),
        )
    )
    return pod(
        name,
        group,
        cpu if draw(st.integers(0, 6)) else 0,
        "1Gi",
        on=on,
        role=draw(st.sampled_from(["", "worker"])),
        priority={"low": 1, "high": 9}[level],
        labels={"app": draw(st.sampled_from(["a", "b"]))},
        annotations={} if draw(st.integers(0, 7)) else {"volcano.sh/preemptable": "false"},
        preemption_policy="" if draw(st.integers(0, 9)) else "Never",
        **({} if draw(st.integers(0, 7)) else {"affinity": shy}),
    )


# -- the plain way -----------------------------------------------------------------------------------------------------


class Plain:
    """Volcano's loops as the specification has them (03 §4, §5)."""

    def __init__(self, ssn: Session, reason: str) -> None:
        self.ssn, self.tables, self.reason = ssn, ssn.tables, reason
        self.failed: dict[tuple[int, int], set[int]] = {}

    def starving(self) -> dict[int, list[int]]:
        ssn, found = self.ssn, dict[int, list[int]]()
        for job in ssn.live_jobs.tolist():
            handle = Job(self.tables, job)
            if ssn.ask(points.job_valid, handle) is None and ssn.ask(points.job_starving, handle):
                found.setdefault(handle.queue.row, []).append(job)
        return found

    def waiting(self, job: int) -> list[int]:
        tasks, rows = self.tables.tasks, self.tables.jobs.tasks[job]
        free = (tasks.status[rows] == TaskStatus.PENDING) & (tasks.gate[rows] == NO_GATE)
        return list(self.ssn.order.sorted_tasks(rows[free]).tolist())

    def preempt(self) -> None:
        starving = self.starving()
        queues = Heap(self.ssn.order.queue_keys(), list(starving))
        while queues:
            of = queues.pop()
            jobs = Heap(self.ssn.order.job_keys(), starving[of])
            while jobs:
                self.all_or_nothing(job := jobs.pop(), self.for_preemptor(of, job))
            for job in starving[of]:
                for row in self.waiting(job):
                    with self.ssn.statement() as stmt:
                        if not self.for_preemptor(-1, job)(stmt, row):
                            break
                        stmt.commit()

    def reclaim(self) -> None:
        starving = self.starving()
        queues = Heap(self.ssn.order.queue_keys(), list(starving))
        while queues:
            of = queues.pop()
            if self.ssn.ask(points.overused, Queue(self.tables, of)):
                continue
            jobs = Heap(self.ssn.order.job_keys(), starving[of])
            while jobs:
                self.all_or_nothing(jobs.pop(), self.for_reclaimer)

    def all_or_nothing(self, job: int, make_room: Callable[[Statement, int], bool]) -> None:
        with self.ssn.statement() as stmt:
            for row in self.waiting(job):
                if not self.ssn.ask(points.job_starving, Job(self.tables, job)):
                    break
                make_room(stmt, row)
            if job_pipelined(self.ssn, job):
                stmt.commit()
            elif (attempt := discarded(self.ssn, job, stmt)).undone:
                self.ssn.trace.take(job, attempt)

    def for_preemptor(self, of: int, job: int) -> Callable[[Statement, int], bool]:
        """``of`` -1: within the job."""

        def candidates(task: Task) -> Callable[[int], bool]:
            tasks, jobs = self.tables.tasks, self.tables.jobs

            def may(row: int) -> bool:
                theirs = int(tasks.job[row])
                if task.best_effort and not tasks.best_effort[row]:
                    return False
                return theirs == job if of < 0 else jobs.queue[theirs] == of and theirs != job

            return may

        def make_room(stmt: Statement, row: int) -> bool:
            task = Task(self.tables, row)
            if task.pod.spec.preemption_policy == "Never" or self.ssn.ask(points.task_refused, task) is not None:
                return False
            for there in self.by_score(task, self.nodes(task, cached=True)):
                victims = self.victims(task, there, candidates(task), points.preemptable_victims)
                if victims is not None and self.evict(stmt, task, there, victims, checked=True):
                    return True
            return False

        return make_room

    def for_reclaimer(self, stmt: Statement, row: int) -> bool:
        task, jobs, tasks = Task(self.tables, row), self.tables.jobs, self.tables.tasks
        own = task.queue
        if task.pod.spec.preemption_policy == "Never":
            return False
        if not self.ssn.ask(points.preemptive, own, TaskRows(self.tables, np.array([row]))):
            return False

        def may(row: int) -> bool:
            theirs = int(jobs.queue[tasks.job[row]])
            running = tasks.status[row] == TaskStatus.RUNNING
            return bool(running) and theirs != own.row and self.tables.queues.objs[theirs].reclaimable

        for there in self.nodes(task, cached=False):
            if not len(self.on(there, may)):
                continue
            victims = self.victims(task, there, may, points.reclaimable_victims)
            if victims is not None and self.evict(stmt, task, there, victims, checked=False):
                return True
        return False

    # -- nodes and victims --------------------------------------------------------------------------------------------

    def reasons(self, task: Task, there: int) -> list[Code]:
        one = NodeRows(self.tables, np.array([there]))
        filter_results = self.ssn.ask(shared.class_filters, TaskClass(self.tables, task.cls.row), one)
        filter_results = filter_results + self.ssn.ask(shared.task_filters, task, one)
        return [unfit.code for filter_result in filter_results for unfit in filter_result.why[filter_result.codes[0]]]

    def nodes(self, task: Task, *, cached: bool) -> list[int]:
        errors = self.ssn.trace.errors_of(task.job.row).get(task.row)
        given_up = set()
        if errors is not None and errors.node_rows is not None and errors.codes is not None:
            given_up = set(errors.node_rows[errors.codes == Code.UNRESOLVABLE].tolist())
        role = int(self.tables.tasks.role[task.row])
        failed = self.failed.setdefault((task.job.row, role), set()) if cached and role else set()
        found = []
        for there in range(len(self.tables.nodes.facts)):
            if there in given_up or there in failed:
                continue
            if any(code is not Code.UNSCHEDULABLE for code in self.reasons(task, there)):
                failed.add(there)
            else:
                found.append(there)
        return found

    def by_score(self, task: Task, nodes: list[int]) -> list[int]:
        if not nodes:
            return []
        rows = NodeRows(self.tables, np.array(nodes))
        start = self.ssn.ask(shared.class_scores, task.cls, rows)
        scores = np.zeros(len(nodes)) + self.ssn.ask(shared.task_scores, task, rows, start)
        return [nodes[i] for i in sorted(range(len(nodes)), key=lambda i: (-scores[i], i))]

    def on(self, there: int, may: Callable[[int], bool]) -> list[int]:
        tasks = self.tables.tasks
        runs = (TaskStatus.RUNNING, TaskStatus.BOUND)
        rows = [row for row in evictable(self.ssn).rows.tolist() if tasks.node[row] == there]
        return [row for row in rows if tasks.status[row] in runs and may(row)]

    def victims(self, task: Task, there: int, may: Callable[[int], bool], votes: object) -> list[int] | None:
        """None where they would not be enough."""
        rows = np.array(self.on(there, may), dtype=np.int64)
        named = rows[self.ssn.ask(votes, task, Candidates(self.tables, rows))]
        req = self.tables.classes.req[self.tables.tasks.cls[named]].sum(axis=0)
        return named.tolist() if self.has_room(task, self.tables.nodes.books[there, FUTURE] + req) else None

    def has_room(self, task: Task, room: np.ndarray) -> bool:
        asked = [(i, need) for i, need in enumerate(task.req.tolist()) if i < 2 or need]
        return all(need - room[i] < 0.1 for i, need in asked)

    def evict(self, stmt: Statement, task: Task, there: int, victims: list[int], *, checked: bool) -> bool:
        ssn, evicted = self.ssn, list[int]()
        own = task.queue

        def is_let_in() -> bool:
            allowed = ssn.ask(points.tasks_allowed, own, TaskRows(self.tables, np.array([task.row])))
            return allowed.tasks > 0 and not self.reasons(task, there)

        def fits() -> bool:
            has_room = self.has_room(task, self.tables.nodes.books[there, FUTURE])
            return has_room and (not checked or is_let_in())

        with stmt.trial() as trial:
            for row in eviction_order(ssn, victims, task.row):
                if fits():
                    break
                stmt.evict([row], self.reason)
                evicted.append(row)
            freed = not checked or not self.tables.tasks.best_effort[evicted].all()
            agreed = checked or is_let_in()
            if fits() and agreed and stmt.pipeline([task.row], [there], evicted=bool(evicted) and freed) is None:
                trial.keep()
        return trial.kept


def plain_policy(conf: str, action: str) -> Policy:
    """The policy, with the action done the plain way."""
    under = policy(conf)
    plain = [
        replace(step, run=lambda ssn: getattr(Plain(ssn, action), action)(), arguments={})
        if step.name == action
        else step
        for step in under.actions
    ]
    return replace(under, actions=tuple(plain))


# -- properties --------------------------------------------------------------------------------------------------------


def said(ran: Ran) -> tuple[object, ...]:
    """What was decided, and what is reported to users and on pods."""
    outcome = ran.outcome
    return ran.decisions, ran.pipelined, outcome.groups, list(outcome.notices()), NearestBlockers(outcome).by_key()


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize("conf", [CONF, ONE_TIER], ids=["two tiers", "one tier"])
@given(objects=crowded())
@settings(max_examples=70, deadline=None)
def test_evictions_are_those_of_the_plain_way(action: str, conf: str, objects: list[Object]) -> None:
    text = conf.replace("ACTION", action)
    found, wanted = run(cluster(*objects), text), run(cluster(*objects), plain_policy(text, action))
    assert (found.decisions, found.pipelined) == (wanted.decisions, wanted.pipelined)
    assert found.outcome.groups == wanted.outcome.groups


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@given(objects=crowded(), aware=st.booleans())
@settings(max_examples=50, deadline=None)
def test_what_is_kept_changes_nothing(action: str, objects: list[Object], aware: bool) -> None:
    """Cycle after cycle, with a memo and without, the same is decided and reported; the second time nothing has
    changed, the third time a pod has gone."""
    arguments = "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]" if aware else ""
    under = policy(CONF.replace("ACTION", action) + arguments)
    keeping, store = Memo(), cluster(*objects)
    for _ in range(3):
        snapshot = store.snapshot()
        assert said(run(snapshot, under, memo=keeping)) == said(run(snapshot, under, memo=Memo(keeps=False)))
        if _ == 1:
            gone = next((obj for obj in objects if isinstance(obj, Pod) and obj.node_name), None)
            if gone is not None:
                store.apply(Gone(Pod, gone.key))


@given(objects=crowded(), action=st.sampled_from(["preempt", "reclaim"]))
@settings(max_examples=50, deadline=None)
def test_nobody_is_evicted_without_a_plan(objects: list[Object], action: str) -> None:
    """A plugin that evicts has promised the room to a job; no gang that others took from falls below its minimum, where
    plugins of one tier agree on victims."""
    ran = run(cluster(*objects), ONE_TIER.replace("ACTION", action))
    assert len(set(ran.evicted)) == len(ran.evicted)
    assert not ran.evicted or ran.pipelined
    groups = {group.key: group for group in groups_of(objects)}
    pods = {pod.key: pod for pod in pods_of(objects)}
    for key, gone in Counter(pods[name].group_key for name in ran.evicted).items():
        running = sum(p.group_key == key and bool(p.node_name) for p in pods.values())
        assert running - gone >= min(groups[key].min_member, running)
