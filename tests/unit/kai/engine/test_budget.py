"""What is tried for one job is bounded, whatever it asks for, and what was not tried to the end is not told as a
proof."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.kai.engine import budget as module
from pumice.kai.engine.budget import QUEUE_TRIES_MAX, TRIES_MAX, SearchBudget
from pumice.kai.engine.parts import Part
from pumice.model.events import Object
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.state.store import Store
from tests.unit.kai.cluster import GPU, Ran, cycle, job, node, opened, policy, queue, store


def test_a_tree_of_groups_is_tried_so_often_and_its_pods_are_told_that_this_is_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "Not all was tried" not in told(cycle(groups_in_groups(), policy(["allocate"])))
    monkeypatch.setattr(module, "TRIES_MAX", 110)
    message = told(cycle(groups_in_groups(), policy(["allocate"])))
    assert message.endswith("Not all was tried: allocate was cut off after 110 tries.")


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


def told(ran: Ran) -> str:
    """What the first pod that waits is told."""
    assert not ran.decisions
    return next(iter(ran.outcome.notices())).message


def test_sets_of_nodes_that_lack_room_for_one_task_cost_no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    racks = [node(f"n{i:03}", 8, labels={"rack": f"r{i // 2}"}) for i in range(200)]
    small, large = (job("near", "q", ["", ""], gpus, topology=TopologyConstraint("t", "rack")) for gpus in (0, 9))
    found = store(*racks, Topology("t", ("rack",)), *queued(*small[:-1], large[-1]))
    assert "Not all was tried" not in told(cycle(found, policy(["allocate"])))


def test_a_search_for_victims_that_was_cut_off_evicts_nobody_and_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    within_quota = [job(f"runs-{i}", "p", [f"n{i // 8}"]) for i in range(72)]
    found = store(
        *(node(f"n{i}") for i in range(9)), queue("p", 72), queue("q", 1), *within_quota, job("new", "q", [""])
    )
    under = policy(["allocate", "reclaim"])
    assert "Not all was tried" not in told(cycle(found, under))
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    assert told(cycle(found, under)).endswith("Not all was tried: reclaim was cut off after 68 tries.")


def test_jobs_of_a_queue_share_what_may_be_tried_in_vain_and_each_may_try_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ACTION_TRIES_MAX", 10 * QUEUE_TRIES_MAX)
    ssn = opened(store(node("a"), queue("q"), queue("r"), job("x", "q", [""]), job("y", "r", [""])))
    allowed = SearchBudget(ssn)
    x, y = (Part(row, {row: [row]}) for row in range(2))
    counts = [in_vain(allowed, x) for _ in range(20)]
    assert counts[0] == TRIES_MAX
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 64 + 4
    assert sum(each - counts[-1] for each in counts) <= QUEUE_TRIES_MAX
    assert in_vain(allowed, y) == TRIES_MAX


def test_an_action_has_a_limit_over_all_queues_beyond_which_each_job_has_a_few_tries() -> None:
    names = [f"q{i}" for i in range(12)]
    ssn = opened(store(node("a"), *map(queue, names), *(job(f"j-{name}", name, [""]) for name in names)))
    allowed = SearchBudget(ssn)
    counts = [in_vain(allowed, Part(row, {row: [row]})) for row in range(12)]
    assert sum(counts) <= module.ACTION_TRIES_MAX + 12 * 16
    assert counts[-1] == 16


def test_a_scenario_of_many_tasks_counts_as_several_tries() -> None:
    allowed = SearchBudget(opened(store(node("a"), queue("q"), job("x", "q", [""]))))
    assert in_vain(allowed, Part(0, {0: [0]}), tasks=24) == TRIES_MAX // 4


def in_vain(allowed: SearchBudget, part: Part, tasks: int = 0) -> int:
    """Try until nothing is left, and fail. Return how often that was."""
    allowed.begin(part)
    count = 0
    while allowed.spend(tasks):
        count += 1
    assert allowed.cut
    allowed.failed()
    return count
