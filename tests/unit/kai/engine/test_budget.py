"""What is tried for one job is bounded, whatever it asks for, and what was not tried to the end is not reported as a
proof."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.kai.engine.budget import CONSOLIDATION_STEPS_MAX, Steps, budget_for
from pumice.kai.engine.counters import Tally, tallies
from pumice.kai.table import DEFAULT_CONF
from pumice.model.blockers import NoVictims, SearchCut
from pumice.model.decisions import Evict
from pumice.model.devices.gpu import GpuShare
from pumice.model.events import Object, Seen
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.telemetry.cycle_metrics import report_cycle
from pumice.runtime.telemetry.metrics import Metrics
from pumice.sim.workloads.kai import SCHEDULER, build_kai
from pumice.state.store import Store
from tests.unit.kai.cluster import GPU, Ran, cycle, job, node, opened, policy, queue, store


def test_a_tree_of_groups_is_tried_up_to_its_limit_and_its_pods_say_that_this_is_no_proof() -> None:
    free = cycle(groups_in_groups(), policy(["allocate"], allocate={"maxSearchSteps": 0}))
    assert "Not all was tried" not in reports(free)
    message = reports(cycle(groups_in_groups(), policy(["allocate"], allocate={"maxSearchSteps": 110})))
    assert "Not all was tried: allocate was cut off after" in message


def groups_in_groups() -> Store:
    """Five sets of groups around one pod set, near each other in one way or another, of which no pair of nodes takes
    what it has room for in sum."""
    labels = [{"row": f"r{i // 8}", "column": f"c{i // 2 % 4}", "pair": f"p{i // 2}"} for i in range(32)]
    sets = [SubGroup(f"s{i}", parent=f"s{i - 1}" if i else "", topology=near(i)) for i in range(5)]
    leaf = SubGroup("leaf", 4, "s4", TopologyConstraint("pair", "pair"))
    group, *pods = (each for each in job("deep", "q", ["/leaf"] * 4, sub_groups=[*sets, leaf])[1:])
    return store(
        *(node(f"n{i:02}", 4, labels=each) for i, each in enumerate(labels)),
        *(Topology(label, (label,)) for label in labels[0]),
        *queued(group, *(with_gpus(pod, gpus) for pod, gpus in zip(pods, (0, 3, 3, 2), strict=True))),
    )


def near(i: int) -> TopologyConstraint:
    label = ("row", "column")[i % 2]
    return TopologyConstraint(label, preferred=label)


def with_gpus(pod: Object, gpus: int) -> Object:
    assert isinstance(pod, Pod)
    return replace(pod, spec=PodSpec(Resource(1000.0, 1e9, {"pods": 1.0, **({GPU: 1000.0 * gpus} if gpus else {})})))


def queued(*objects: Object) -> list[Object]:
    return [queue("q"), *objects]


def reports(ran: Ran) -> str:
    """The message on the first pod that waits."""
    assert not ran.decisions
    return next(iter(ran.outcome.notices())).message


def test_sets_of_nodes_that_lack_room_for_one_task_cost_no_step() -> None:
    racks = [node(f"n{i:03}", 8, labels={"rack": f"r{i // 2}"}) for i in range(200)]
    small, large = (job("near", "q", ["", ""], gpus, topology=TopologyConstraint("t", "rack")) for gpus in (0, 9))
    found = store(*racks, Topology("t", ("rack",)), *queued(*small[:-1], large[-1]))
    assert "Not all was tried" not in reports(cycle(found, policy(["allocate"], allocate={"maxSearchSteps": 1})))


@pytest.mark.parametrize("share", [None, GpuShare(0.5)])
def test_tasks_that_share_gpus_take_steps_each_in_a_search(share: GpuShare | None) -> None:
    racks = [node(f"n{i}", 8, labels={"rack": "r"}) for i in range(2)]
    gang = job("near", "q", [""] * 12, 1 if share is None else 0, topology=TopologyConstraint("t", "rack"))
    pods = [replace(each, spec=replace(each.spec, gpu_share=share)) if isinstance(each, Pod) else each for each in gang]
    found = store(*racks, Topology("t", ("rack",)), *queued(*pods))
    assert len(cycle(found, policy(["allocate"])).decisions) == 12
    ran = cycle(found, policy(["allocate"], allocate={"maxSearchSteps": 50}))
    assert len(ran.decisions) == (12 if share is None else 0)
    assert any(isinstance(each.finding, SearchCut) for each in ran.outcome.entries) == (share is not None)


def test_a_search_for_victims_that_was_cut_off_evicts_nobody_and_is_no_proof() -> None:
    within_quota = [job(f"runs-{i}", "p", [f"n{i // 8}"]) for i in range(72)]
    found = store(
        *(node(f"n{i}") for i in range(9)), queue("p", 72), queue("q", 1), *within_quota, job("new", "q", [""])
    )
    assert "Not all was tried" not in reports(
        cycle(found, policy(["allocate", "reclaim"], reclaim={"maxSearchSteps": 0}))
    )
    ran = cycle(found, policy(["allocate", "reclaim"], reclaim={"maxSearchSteps": 1}))
    assert "Not all was tried: reclaim was cut off after" in reports(ran)
    metrics = Metrics()
    report_cycle(metrics, ran.outcome)
    assert b'pumice_searches_cut_total{action="reclaim"} 1.0' in metrics.text()


def test_a_job_begins_with_steps_for_its_tasks_however_many_queues_wait() -> None:
    names = [f"q{i}" for i in range(12)]
    ssn = opened(store(node("a"), *map(queue, names), *(job(f"j-{name}", name, [""] * 9) for name in names)))
    budget = budget_for(ssn, ssn.jobs.rows, 12 * 600)  # 40 less for each than it needs, which the reserve has
    for row in range(len(names)):
        assert budget.begin(row)
        assert budget.spend(64 + 64 * 9)
        assert not budget.spend()
        assert budget.is_cut()


def test_steps_are_weighed_by_what_they_cost_and_shares_of_a_step_are_carried_over() -> None:
    steps = Steps()
    ssn = opened(store(node("a"), queue("q"), job("x", "q", [""])))
    steps.budget = budget_for(ssn, ssn.jobs.rows, 200)
    assert steps.budget.begin(0)
    assert steps.evict(tasks=24, operations=1, shared=True)
    assert steps.budget.taken == 4 + 24 // 8
    assert all(steps.consider() for _ in range(15))
    assert steps.budget.taken == 7
    assert steps.consider()
    assert steps.budget.taken == 8
    assert all(steps.compare(12) for _ in range(4))
    assert steps.budget.taken == 8 + 4 * (24 + 6 * 12) // 16
    assert not steps.compare(1000)
    assert steps.cut


@pytest.mark.parametrize(("shared", "more"), [(False, 2), (True, 6)])
def test_operations_of_one_set_of_victims_take_steps_of_their_own(shared: bool, more: int) -> None:
    steps, ssn = Steps(), opened(store(node("a"), queue("q"), job("x", "q", [""])))
    steps.budget = budget_for(ssn, ssn.jobs.rows, 200)
    assert steps.budget.begin(0)
    assert steps.evict(tasks=8, operations=3, shared=shared)
    assert steps.budget.taken == 4 + 2 * more + 1


def test_jobs_that_were_not_tried_come_first_in_the_next_cycle() -> None:
    """The storm of one tenant uses up its steps in each cycle, and all of it is tried in the end."""
    within_quota = [job(f"runs-{i}", "p", [f"n{i // 8}"]) for i in range(72)]
    # Unlike priorities, so that none is refuted with another.
    storm = [job(f"storm-{i:02d}", "q", [""], priority=50 + i) for i in range(9)]
    found = store(*(node(f"n{i}") for i in range(9)), queue("p", 72), queue("q", 1), *within_quota, *storm)
    few, tried, cuts = policy(["reclaim"], reclaim={"maxSearchSteps": 1}), set[str](), 0
    for _ in range(12):
        ran = cycle(found, few)
        assert not [each for each in ran.decisions if isinstance(each, Evict)]
        found.remember(ran.outcome.writes)
        not_tried = {each.subject for each in ran.outcome.entries if isinstance(each.finding, SearchCut)}
        tried |= {each.subject for each in ran.outcome.entries if isinstance(each.finding, NoVictims)}
        cuts += bool(not_tried)
    assert cuts
    assert len(tried) == 9


def test_a_gang_larger_than_each_domain_is_refuted_before_victims_are_sought() -> None:
    racks = [node(f"n{i:03}", 8, labels={"rack": f"r{i // 2}"}) for i in range(8)]
    full = [job(f"runs-{i}", "p", [f"n{i:03}"], gpus=8) for i in range(8)]
    for count, sought in ((2, True), (3, False)):
        near = job("near", "q", [""] * count, gpus=8, topology=TopologyConstraint("t", "rack"))
        found = store(*racks, Topology("t", ("rack",)), queue("p", 0), queue("q", 64), *full, *near)
        ran = cycle(found, policy(["reclaim"]))
        assert bool(tallies(ran.outcome.trace.counts, Tally.SIMULATED)) == sought


@pytest.mark.parametrize(
    ("nodes", "jobs", "steps"), [(100, 10, 2_000), pytest.param(500, 50, 34_000, marks=pytest.mark.long)]
)
def test_consolidation_moves_for_fifty_jobs_with_steps_to_spare(nodes: int, jobs: int, steps: int) -> None:
    """Its default is more than 34,000."""
    assert steps <= 0.85 * CONSOLIDATION_STEPS_MAX
    arguments = f"{{maxConsolidationPreemptees: -1, maxSearchSteps: {steps}}}"
    conf = f"{DEFAULT_CONF}configurations:\n- name: consolidation\n  arguments: {arguments}\n"
    filled = Store(scheduler_names=(SCHEDULER,))
    for each in build_kai("kai-consolidate", nodes, jobs, 1).objects():
        filled.apply(Seen(each))
    found = run_cycle(filled.snapshot(), policy_of(conf, builtin_registry()), 0.0, ListPlanner())
    assert len(found.pipelined) >= jobs
    assert not any(isinstance(entry.finding, SearchCut) for entry in found.entries)
