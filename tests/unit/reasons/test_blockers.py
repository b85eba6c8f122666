"""Every job that waits has a blocker that is its own, in both languages; blockers are values, and JSON holds them."""

from __future__ import annotations

import json
from random import Random
from typing import Any, get_type_hints

import numpy as np
import pytest

from pumice.answers.codes import Code, code_of
from pumice.columns.dtypes import EPS
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Job, Node, Queue, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.kai.table import DEFAULT_CONF as KAI_CONF
from pumice.model import blockers as kinds
from pumice.model.blockers import (
    ACTION,
    CLOSED,
    Behind,
    Blocker,
    GangIncomplete,
    GangPartial,
    Missing,
    NodeFilter,
    NotAdmitted,
    PluginFault,
    QueueLimit,
    Reserved,
    Shortage,
)
from pumice.model.blockers.changes import AddPods, Amount, Change
from pumice.model.status import TaskStatus
from pumice.reasons import sentences
from pumice.reasons.blockers import Blockers, blockers_of
from pumice.reasons.sentences import sentence
from pumice.runtime.one_cycle import Answer, schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, resource, run
from pumice.testing.clusters import small_cluster
from pumice.testing.kai_clusters import NEAR, in_words_of_kai
from pumice.volcano.table import DEFAULT_CONF
from tests.simulation.scenes import POLICIES

EVICTING = DEFAULT_CONF.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
CONFS = {**POLICIES, "evicting": EVICTING, "kai": KAI_CONF}
WORLDS = 25


def answers(name: str) -> list[Answer]:
    """Of one cycle each, on small clusters by seed."""
    under, is_kai = policy_of(CONFS[name], builtin_registry()), name == "kai"
    worlds = [small_cluster(Random(seed), alter=in_words_of_kai if is_kai else None) for seed in range(WORLDS)]
    return [schedule_once([*world, *([NEAR] if is_kai else [])], under, 1_000.0) for world in worlds]


@pytest.mark.parametrize("name", sorted(CONFS))
def test_every_waiting_job_has_a_blocker_with_a_sentence_and_json(name: str) -> None:
    waiting = 0
    for answer in answers(name):
        for found in blockers_of(answer.outcome).values():
            assert found and found != (Behind(),), "a cycle with one action for all leaves no job behind"
            assert all(sentence(each) for each in found)
            assert all(isinstance(change, Change) for each in found for change in each.lift)
            plain = json.loads(json.dumps([each.plain for each in found]))
            assert [each["code"] for each in plain] == [each.code for each in found]
            waiting += 1
    assert waiting > WORLDS // 4


@pytest.mark.parametrize("name", sorted(CONFS))
def test_a_reserved_node_is_the_jobs_own(name: str) -> None:
    for answer in answers(name):
        tables, found = answer.outcome.tables, blockers_of(answer.outcome)
        rows = (tables.tasks.status == TaskStatus.PIPELINED).nonzero()[0].tolist()
        names, job_of, node_of = tables.nodes.facts.names, tables.tasks.job, tables.tasks.node
        holds = {(tables.jobs.uids[job_of[row]], names[node_of[row]]) for row in rows}
        says = {
            (key, each_node)
            for key, blockers in found.items()
            for each in blockers
            if isinstance(each, Reserved) and each.job
            for each_node in each.nodes
            if each.job == key
        }
        assert says == holds


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_shortage_is_what_nodes_have_too_little_of(name: str) -> None:
    """Where nothing was placed in the cycle, nor of the gang, so that the books are still those that were looked at."""
    seen = 0
    for answer in answers(name):
        if answer.decisions or answer.pipelined:
            continue
        tables = answer.outcome.tables
        blockers = Blockers(answer.outcome)
        fresh = [job for job in blockers.waiting.tolist() if answer.outcome.trace.undone_of(job) is None]
        for each in [blockers.of(job)[0] for job in fresh]:
            if isinstance(each, Shortage) and each.looked_at == len(tables.nodes.facts):
                free = tables.nodes.books[:, FUTURE, tables.axis.column[each.resource]].clip(min=0)
                assert np.count_nonzero(each.each - free >= EPS) >= each.nodes > 0
                assert (each.free, each.best) == (free.sum(), free.max())
                seen += 1
    assert seen


def test_equal_gangs_of_which_one_fits_have_the_same_blockers_and_the_other_has_none() -> None:
    ran = run(cluster(node("n", cpu=2), queue(), *[gang(name) for name in ("a", "b", "c")]), policy(BARE))
    found = blockers_of(ran.outcome)
    assert found == {"ns/b": LATE, "ns/c": LATE}


@pytest.mark.parametrize("keeps", [True, False])
def test_equal_jobs_that_failed_at_other_times_have_the_amounts_that_were_free_then(keeps: bool) -> None:
    objects = [node("n0", cpu=2), node("n1", cpu=1), node("n2", cpu=1), queue()]
    for i, (name, cpu) in enumerate({"a": 2, "b": 2, "c": 1, "d": 2}.items()):
        objects += [podgroup(name, 1, phase="Inqueue", creation=float(i)), pod(f"{name}-0", name, cpu)]
    ran = run(cluster(*objects), policy(BARE), memo=Memo(keeps=keeps))
    assert [each.pod for each in ran.decisions] == ["ns/a-0", "ns/c-0"]
    found = {
        job: [each.free for each in of if isinstance(each, Shortage)] for job, of in blockers_of(ran.outcome).items()
    }
    assert found == {"ns/b": [2000.0], "ns/d": [1000.0]}


#: No plugin looks at queues.
BARE = POLICIES["bare"]
LATE = (
    Behind(("ns/a",), "default", Amount("cpu", 2000.0), 2000.0),
    Shortage("cpu", 1000.0, 2, 0.0, 0.0, 1, 1),
)


def gang(name: str) -> list[object]:
    return [podgroup(name, 2, phase="Inqueue"), *pods(name, 2, cpu=1)]


def test_what_fits_of_a_gang_comes_before_what_the_next_pod_lacks() -> None:
    ran = run(
        cluster(node("n", cpu=3), queue(), podgroup("g", 4, phase="Inqueue"), pods("g", 4, cpu=1)),
        policy(BARE),
    )
    (first, second) = blockers_of(ran.outcome)["ns/g"]
    assert (first, second) == (
        GangPartial(3, 4, second),
        Shortage("cpu", 1000.0, 1, 0.0, 0.0, 1, 1, 3000.0, 3000.0, node="n"),
    )


@plugin("own")
@points.predicate
def of_class(_: Session, cls: TaskClass, node: Node) -> Unfit | None:
    return None if node.name == "cordoned" else Unfit("not here")


@plugin("own")
@points.predicate
def of_task(_: Session, task: Task, node: Node) -> Unfit | None:
    return None if node.name == "cordoned" else Unfit("not here")


@plugin("own")
@points.pre_predicate
def before_nodes(_: Session, task: Task) -> Unfit | None:
    return Unfit("not here")


@pytest.mark.parametrize(
    ("hook", "others"), [(of_class, {"predicates"}), (of_task, {"predicates"}), (before_nodes, set())]
)
@pytest.mark.parametrize("cpu", [0, 1])
def test_what_refuses_nodes_is_named_by_its_plugin(hook: Any, others: set[str], cpu: int) -> None:
    conf = 'actions: "allocate, backfill"\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: own}]}]'
    cordoned = node("cordoned", unschedulable=True)
    group = podgroup("g", 1, phase="Inqueue")
    state = cluster(node("n"), cordoned, queue(), group, pods("g", 1, cpu=cpu, memory=cpu))
    found = blockers_of(run(state, policy(conf, plugins=[hook])).outcome)["ns/g"]
    by = {each.detail: each.plugin for each in found if isinstance(each, NodeFilter)}
    assert by.pop("not here") == "own" and set(by.values()) == others


def test_a_closed_queue_admits_nothing() -> None:
    group = podgroup("g", 1, "q", min_resources=resource(1))
    ran = run(cluster(node("n"), queue("q", state="Closed"), group, pods("g", 1)), policy())
    assert blockers_of(ran.outcome) == {"ns/g": (NotAdmitted((QueueLimit("q", CLOSED),)),)}


def test_a_job_of_volcano_that_no_action_of_kai_admits_says_so() -> None:
    store = cluster(node("n", cpu=4), podgroup("g", 2, phase="Pending"), *pods("g", 2))
    (found,) = blockers_of(run(store, policy_of(KAI_CONF, builtin_registry())).outcome)["ns/g"]
    assert found == NotAdmitted((Missing(ACTION, "enqueue"),))
    assert sentence(found) == "the policy has no action enqueue, which admits jobs of Volcano"


def test_a_gang_with_too_few_pods_says_how_many() -> None:
    ran = run(cluster(node("n"), queue(), podgroup("g", 3, phase="Inqueue"), pods("g", 2)), policy())
    (found,) = blockers_of(ran.outcome)["ns/g"]
    assert isinstance(found, GangIncomplete) and (found.role, found.exist, found.minimum) == ("", 2, 3)
    assert found.lift == (AddPods("", 1),)


# -- the values


ALL = [kind for kind in vars(kinds).values() if isinstance(kind, type) and issubclass(kind, Blocker)]
ALL.remove(Blocker)


def test_codes_are_the_names_of_their_kinds_and_each_has_a_sentence() -> None:
    assert {kind.code for kind in ALL} == {kind.__name__ for kind in ALL}
    assert set(ALL) <= set(sentences._SENTENCES)
    assert all(get_type_hints(kind) for kind in ALL)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_each_kind_has_a_lift_or_says_why_it_has_none(kind: type[Blocker]) -> None:
    assert ("lift" in vars(kind)) != bool(kind.no_lift)


def test_blockers_inside_blockers_are_dictionaries_too() -> None:
    found = NotAdmitted((NodeFilter("mine", 1, 2, "no"),)).plain
    inner = {"code": "NodeFilter", "plugin": "mine", "nodes": 1, "looked_at": 2, "detail": "no", "changes": []}
    assert found == {"code": "NotAdmitted", "by": [inner]}


def _raises(*args: Any) -> Any:
    raise ValueError("odd")


def _that_fails(at: str) -> Any:
    """Return a plugin that fails when it is opened, or when queues or jobs are ordered."""

    class Odd:
        def __init__(self, ssn: Session) -> None:
            if at == "opening":
                _raises()

        @points.queue_order
        def queue_order(self, queue: Queue) -> float:
            return _raises() if at == "queue_order" else 0.0

        @points.job_order
        def job_order(self, left: Job, right: Job) -> int:
            return _raises() if at == "job_order" else 0

    return plugin("odd")(Odd)


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
@pytest.mark.parametrize("at", ["opening", "queue_order", "job_order"])
def test_a_fault_that_ends_a_cycle_or_an_action_is_the_blocker_of_waiting_jobs(at: str, phase: str) -> None:
    queues = queue("default"), queue("other")
    groups = [podgroup(name, 1, of, phase=phase) for name, of in (("a", "default"), ("b", "other"), ("c", "other"))]
    waiting = [each for name in "abc" for each in pods(name, 1)]
    conf = "actions: enqueue, allocate\ntiers: [{plugins: [{name: odd}, {name: gang}]}]\n"
    ran = run(cluster([node("n1", 8), *queues, *groups, *waiting]), conf, plugins=[_that_fails(at)])
    found = blockers_of(ran.outcome)
    assert found and not ran.binds
    for each in found.values():
        assert code_of(each[0]) is Code.FAULT
        fault = each[0].by[0] if isinstance(each[0], NotAdmitted) else each[0]
        assert isinstance(fault, PluginFault)
        assert (fault.plugin, fault.point, fault.error) == ("odd", at, "ValueError: odd")
        assert fault.place.partition(":")[0] == __file__


def test_a_fault_of_one_job_is_the_blocker_of_no_other() -> None:
    @plugin("odd")
    @points.node_order
    def odd(ssn: Session, task: Task, node: Node) -> float:
        return _raises() if task.job.name == "a" else 0.0

    groups = [podgroup(name, 1, phase="Inqueue") for name in "ab"]
    waiting = [*pods("a", 1), *pods("b", 1, cpu=99)]
    conf = "actions: allocate\ntiers: [{plugins: [{name: odd}, {name: gang}]}]\n"
    ran = run(cluster([node("n1", 8), node("n2", 8), queue(), *groups, *waiting]), conf, plugins=[odd])
    found = blockers_of(ran.outcome)
    assert code_of(found["ns/a"][0]) is Code.FAULT
    assert all(code_of(each) is not Code.FAULT for each in found["ns/b"])
