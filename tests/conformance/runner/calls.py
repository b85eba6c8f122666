"""Kind ``fn``: open a session, then put single questions to its plugins and compare the answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.rows import Candidates, NodeRows, TaskRows
from pumice.columns.views import Job, SubJob, Task
from pumice.framework.plugin.filter_result import Code, FilterResult, Unfit, gather
from pumice.framework.plugin.point import MultiFormQuestion
from pumice.framework.plugin.points import class_scores, task_scores
from pumice.framework.plugin.registry import Registry
from pumice.model.status import TaskStatus
from pumice.volcano import points
from pumice.volcano.eviction.context import EvictionContext, EvictionKind
from pumice.volcano.eviction.victim_order import eviction_order
from pumice.volcano.topology.domains import hypernode_scores
from tests.conformance.runner.actors import EVICTOR, STRANGER, Cast
from tests.conformance.runner.case import Case, Raw
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.policies import policy_of_case
from tests.conformance.runner.result import NotYet
from tests.conformance.runner.session import open_session
from tests.conformance.runner.topology import override_topology
from tests.conformance.runner.world import World

_SUB_JOB = re.compile(r"sub-job (\S+), all hypernodes")
_OF_LAST_JOB = "of the (last) job"


def run_calls(case: Case, registry: Registry) -> Differences:
    """Every call in order, in one session. Raises: NotYet for a call that is not known here."""
    unknown = [f"call {call['call']}" for call in case.raw["calls"] if call["call"] not in _ANSWERS]
    policy = policy_of_case(case, registry)
    if unknown:
        raise NotYet(", ".join(dict.fromkeys(unknown)))
    world = World(case)
    cast = Cast(case, world)
    snapshot = world.store.snapshot()
    snapshot = override_topology(snapshot, case.raw.get("topology"))
    opened = open_session(snapshot, policy, case.now)
    cast.enter(opened.ssn)
    found = Differences()
    for number, call in enumerate(case.raw["calls"], start=1):
        before = len(found.lines)
        _ANSWERS[call["call"]](cast, call, found)
        found.lines[before:] = [f"call {number} {call['call']}: {line}" for line in found.lines[before:]]
    return found


# -- order


def _job_order(cast: Cast, call: Raw, found: Differences) -> None:
    """Whether the first job goes before the second."""
    left, right = (job.row for job in cast.jobs_of(call)[:2])
    first, second = cast.ssn.order.job_keys()([left, right])
    found.value("first job goes first", call["expect"], bool(first < second))


def _job_order_compare(cast: Cast, call: Raw, found: Differences) -> None:
    left, right = cast.jobs_of(call)
    answer = cast.ssn.order.compare_jobs(left.row, right.row)
    found.value("order of jobs", _sign(call["expect"]), _sign(answer))


def _victims_queue(cast: Cast, call: Raw, found: Differences) -> None:
    """``first`` alone, or the whole ``order``."""
    args, expect = call["args"], call["expect"]
    preemptor = cast.task_or_stranger(args.get("preemptor", STRANGER))
    rows = eviction_order(cast.ssn, [cast.task(name).row for name in args["victims"]], preemptor.row)
    order = [Task(cast.ssn.tables, row).key for row in rows]
    stated = {"first": order[0], "order": order}
    for key, want in expect.items():
        if key not in stated:
            raise NotYet(f"expectation {key} of BuildVictimsPriorityQueue")
        found.value(key, want, stated[key])


# -- admission


def _enqueueable(cast: Cast, call: Raw, found: Differences) -> None:
    for job in cast.jobs_of(call):
        found.value(f"{job.key} may be admitted", call["expect"], cast.ssn.ask(points.job_rejected, job) is None)


def _enqueued_then_enqueueable(cast: Cast, call: Raw, found: Differences) -> None:
    for row in cast.ssn.live_jobs.tolist():
        job = Job(cast.ssn.tables, row)
        cast.ssn.ask(points.job_enqueued, job)
        found.value(f"{job.key} may be admitted", call["expect"], cast.ssn.ask(points.job_rejected, job) is None)


# -- eviction


def _evictable(question: MultiFormQuestion[[Task, Candidates], Bool]) -> Callable[[Cast, Raw, Differences], None]:
    def answer(cast: Cast, call: Raw, found: Differences) -> None:
        args = call["args"]
        evictor = cast.task_or_stranger(args.get("preemptor", args.get("reclaimer", STRANGER)))
        candidates = _rows(cast, args["candidates"])
        victims = candidates.rows[cast.ssn.ask(question, evictor, candidates)]
        _compare_tasks(cast, call["expect"], victims, found)

    return answer


def _unified_evictable(cast: Cast, call: Raw, found: Differences) -> None:
    args = call["args"]
    kind = EvictionKind[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", args["kind"]).upper()]
    context = EvictionContext(kind, cast.job(args.get("job", EVICTOR)))
    candidates = _rows(cast, args["candidates"])
    victims = candidates.rows[cast.ssn.ask(points.unified_evictable, context, candidates)]
    _compare_tasks(cast, call["expect"], victims, found)


def _rows(cast: Cast, names: list[str]) -> Candidates:
    return Candidates(cast.ssn.tables, np.array([cast.task(name).row for name in names], dtype=np.int64))


def _compare_tasks(cast: Cast, wanted: list[str], victims: AnyArray, found: Differences) -> None:
    keys = [Task(cast.ssn.tables, row).key for row in victims.tolist()]
    found.multiset("victims", [cast.task(name).key for name in wanted], keys)


# -- scores


def _batch_node_order(cast: Cast, call: Raw, found: Differences) -> None:
    """Scores of one pending task; a node without a score has 0."""
    ssn = cast.ssn
    task = cast.pending_task(of_last_job=_OF_LAST_JOB in str(call.get("doc", "")))
    cast.allocate_hypernode(task)
    names = call.get("args", {}).get("nodes") or ssn.tables.nodes.facts.names
    nodes = NodeRows(ssn.tables, np.array([ssn.tables.nodes.facts.row_of[name] for name in names], dtype=np.int64))
    total = np.zeros(len(nodes))
    for hook in ssn.hooks.at(points.batch_node_order):
        answer = ssn.hooks.ask_one(hook, task.cls if hook.form == "class" else task, nodes)
        total = total if answer is None else total + np.asarray(answer)
    _compare_scores(call, dict(zip(names, total.tolist(), strict=True)), found)


def _pending_and_nodes(cast: Cast) -> Iterator[tuple[Task, NodeRows]]:
    """Each waiting task, with the nodes to which no filter objects."""
    ssn = cast.ssn
    every = NodeRows(ssn.tables, np.arange(len(ssn.tables.nodes.facts)))
    for row in np.flatnonzero(ssn.tables.tasks.status == PENDING).tolist():
        task = Task(ssn.tables, row)
        if task.job.row < 0:
            continue
        filter_results = ssn.ask(points.class_filters, task.cls, every) + ssn.ask(points.task_filters, task, every)
        passes = np.logical_and.reduce([filter_result.codes == 0 for filter_result in filter_results], axis=0)
        yield task, NodeRows(ssn.tables, every.rows[np.broadcast_to(passes, len(every))])


def _predicate(cast: Cast, call: Raw, found: Differences) -> None:
    """Which nodes pass, the same ones for every waiting task; or why each node is refused."""
    if isinstance(call["expect"], dict):
        _predicate_codes(cast, call, found)
        return
    for task, nodes in _pending_and_nodes(cast):
        names = [cast.ssn.tables.nodes.facts.names[row] for row in nodes.rows.tolist()]
        found.multiset(f"nodes that pass for {task.key}", call["expect"], names)


def _node_order(cast: Cast, call: Raw, found: Differences) -> None:
    """Scores of every waiting task on the nodes that pass."""
    ssn, eps = cast.ssn, float(call.get("eps", 1e-8))
    for task, nodes in _pending_and_nodes(cast):
        total = np.zeros(len(nodes))
        for hook in ssn.hooks.at(points.node_order):
            answer = ssn.hooks.ask_one(hook, task.cls if hook.form == "class" else task, nodes)
            total = total if answer is None else total + np.asarray(answer)
        names = [ssn.tables.nodes.facts.names[row] for row in nodes.rows.tolist()]
        scores = dict(zip(names, total.tolist(), strict=True))
        found.numbers(f"score for {task.key}", call["expect"][task.key], scores, eps)


def _prioritize(cast: Cast, call: Raw, found: Differences) -> None:
    """All scores of every waiting task, as they are summed where a node is chosen."""
    ssn = cast.ssn
    for task, nodes in _pending_and_nodes(cast):
        of_class = np.broadcast_to(ssn.ask(class_scores, task.cls, nodes), len(nodes))
        total = np.broadcast_to(ssn.ask(task_scores, task, nodes, of_class), len(nodes))
        names = [ssn.tables.nodes.facts.names[row] for row in nodes.rows.tolist()]
        scores = dict(zip(names, total.tolist(), strict=True))
        found.numbers(f"score for {task.key}", call["expect"][task.key], scores, float(call.get("eps", 1e-8)))


def _predicate_codes(cast: Cast, call: Raw, found: Differences) -> None:
    """The code of the first reason, by task and node, or one for every task on every node."""
    ssn, expect = cast.ssn, call["expect"]
    every = NodeRows(ssn.tables, np.arange(len(ssn.tables.nodes.facts)))
    for row in np.flatnonzero(ssn.tables.tasks.status == PENDING).tolist():
        task = Task(ssn.tables, row)
        if task.job.row < 0:
            continue
        filter_results = ssn.ask(points.class_filters, task.cls, every) + ssn.ask(points.task_filters, task, every)
        whole = (
            gather(filter_results, len(every))
            if filter_results
            else FilterResult(np.zeros(len(every), dtype=np.int32), ((),))
        )
        for node, code in zip(ssn.tables.nodes.facts.names, whole.codes.tolist(), strict=True):
            reason = next(iter(whole.why[code]), Unfit("", Code.SUCCESS))
            if "statuses" in expect:
                (status,) = expect["statuses"]
                wanted = (status["code"] or 0, status["reason"] or "")
                found.value(f"{task.key} on {node}", wanted, (int(reason.code), reason.reason))
            elif task.key in expect:
                _compare_code(f"{task.key} on {node}", expect[task.key][node], int(reason.code), found)


def _compare_code(what: str, wanted: Any, code: int, found: Differences) -> None:
    if wanted == "not 0":
        found.value(f"{what} is refused", True, code != 0)
    else:
        found.value(what, wanted, code)


def _allocate(cast: Cast, call: Raw, found: Differences) -> None:
    """Put tasks on nodes; the session stays as it is then."""
    statement = cast.ssn.statement()
    for name, node in call["args"].items():
        refusal = statement.allocate([cast.task(name).row], [cast.ssn.tables.nodes.facts.row_of[node]])
        found.value(f"refusal of {name} on {node}", None, refusal)
    statement.keep_uncommitted()


def _victim_tasks(cast: Cast, call: Raw, found: Differences) -> None:
    """How many of the running tasks should leave, at a moment when they may."""
    tables = cast.ssn.tables
    running = TaskRows(tables, np.flatnonzero(tables.tasks.status == TaskStatus.RUNNING))
    victims = cast.ssn.ask(points.victim_tasks, running)
    found.value("number of victims", call["expect"], int(victims.sum()))


def _hypernode_order(cast: Cast, call: Raw, found: Differences) -> None:
    named = _SUB_JOB.fullmatch(str(call.get("doc", "")))
    if named is None:
        raise NotYet(f"call HyperNodeOrderMapFn for {call.get('doc')}")
    ssn = cast.ssn
    sub = next(s for s in range(ssn.tables.subs.capacity) if ssn.tables.subs.uids[s] == named[1])
    tree = ssn.tables.tree
    scores = hypernode_scores(ssn, SubJob(ssn.tables, sub).row, list(range(len(tree))))
    _compare_scores(call, dict(zip(tree.names, scores.tolist(), strict=True)), found)


def _compare_scores(call: Raw, scores: Mapping[str, float], found: Differences) -> None:
    if call.get("error", False):
        raise NotYet("a call that must fail")
    found.numbers("score", call["expect"], scores, float(call.get("eps", 1e-8)))


def _sign(number: Any) -> int:
    return int(number > 0) - int(number < 0)


_ANSWERS: dict[str, Callable[[Cast, Raw, Differences], None]] = {
    "Allocate": _allocate,
    "BatchNodeOrderFn": _batch_node_order,
    "BuildVictimsPriorityQueue": _victims_queue,
    "NodeOrderFn": _node_order,
    "PredicateFn": _predicate,
    "PrioritizeNodes": _prioritize,
    "SetNodeUsage": lambda cast, call, found: None,  # part of the snapshot: see Cast
    "VictimTasks": _victim_tasks,
    "HyperNodeOrderMapFn": _hypernode_order,
    "JobEnqueueable": _enqueueable,
    "JobEnqueued+JobEnqueueable": _enqueued_then_enqueueable,
    "JobOrderCompareFn": _job_order_compare,
    "JobOrderFn": _job_order,
    "Preemptable": _evictable(points.preemptable_victims),
    "Reclaimable": _evictable(points.reclaimable_victims),
    "UnifiedEvictable": _unified_evictable,
}
