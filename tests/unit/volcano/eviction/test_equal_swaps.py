"""Equal tasks that are promised a node together fare as they would one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.api import BY_JOB, ROWS, SIGNATURE, Bool, Candidates, Session, Task, plugin, points
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.testing.build import Ran, cluster, node, policy, queue, run
from tests.unit.volcano.evicting import LEVELS, gang

CONF = """
actions: "{action}"
tiers:
- plugins: [{tier}]
- plugins: [{{name: drf}}, {{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"""


def watched(action: str, *, by_job: bool, first: bool = False) -> tuple[Policy, list[str]]:
    """A policy with a plugin that lets everybody go, and the preemptors that it was asked about, the ``first`` one of
    its tier or the last. One that does not judge ``by_job`` has every task tried by itself."""
    asked: list[str] = []
    reads = (ROWS, SIGNATURE, BY_JOB) if by_job else (ROWS, SIGNATURE)

    def all_may_go(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
        asked.append(preemptor.key)
        return np.ones(len(candidates), dtype=bool)

    hook = points.preemptable(reads=reads)(points.reclaimable(reads=reads)(all_may_go))
    names = ["priority", "gang", "conformance"]
    names.insert(0 if first else len(names), "watcher")
    conf = CONF.format(action=action, tier=", ".join(f"{{name: {name}}}" for name in names))
    return policy(conf, plugins=[plugin("watcher")(hook)]), asked


def result(ran: Ran) -> tuple[Any, ...]:
    outcome = ran.outcome
    return ran.decisions, ran.pipelined, list(outcome.entries), list(outcome.groups), outcome.trace.counts


def one_each(nodes: int, of: str = "default", minimum: int = 1) -> list[Object]:
    """Gangs with one pod on every node, which is then full."""
    found: list[Object] = [node(f"n{i}", 6) for i in range(nodes)]
    for j in range(6):
        group, *members = gang(f"low{j}", nodes, minimum, of, creation=float(j))
        found += [group, *(_on(pod, f"n{i}") for i, pod in enumerate(members))]
    return found


def _on(pod: Any, name: str) -> Any:
    return replace(pod, node_name=name, phase="Running")


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_a_gang_that_follows_its_first_task_is_asked_about_once_a_node(action: str) -> None:
    theirs = "default" if action == "preempt" else "other"
    queues = [queue("default"), queue("other")] if action == "reclaim" else []
    objects = [*queues, *one_each(4, theirs), *gang("high", 10, 10, level="high", creation=9.0)]
    (together, asked), (alone, asked_alone) = watched(action, by_job=True), watched(action, by_job=False)
    ran = run(cluster(LEVELS, objects), together)
    assert len(ran.evicted) == len(ran.pipelined) == 10
    assert result(ran) == result(run(cluster(LEVELS, objects), alone))
    assert len(set(asked)) < len(set(asked_alone)) == 10


def test_a_gang_follows_its_first_task_where_only_a_queue_gives_back() -> None:
    """No gang can spare a pod, so the second tier decides: the other queue has more than it deserves."""
    objects = [queue("default"), queue("other"), *one_each(4, "other", minimum=4)]
    objects += gang("high", 6, 6, level="high", creation=9.0)
    together, asked = watched("reclaim", by_job=True, first=True)
    alone, asked_alone = watched("reclaim", by_job=False, first=True)
    ran = run(cluster(LEVELS, objects), together)
    assert len(ran.evicted) == len(ran.pipelined) == 6
    assert result(ran) == result(run(cluster(LEVELS, objects), alone))
    assert len(set(asked)) < len(set(asked_alone)) == 6


def test_a_node_where_nobody_may_leave_is_passed_over_once_for_a_whole_gang() -> None:
    """The one pod of the first node is all of its gang, and without it the gang would have less than the one that
    waits."""
    objects = [node("first", 6, creation=-1.0), *gang("needed", 1, 1, on="first", cpu=6, creation=3.0), *one_each(4)]
    objects += gang("high", 10, 10, level="high", creation=9.0)
    together, asked = watched("preempt", by_job=True, first=True)
    alone, asked_alone = watched("preempt", by_job=False, first=True)
    ran = run(cluster(LEVELS, objects), together)
    assert len(ran.evicted) == len(ran.pipelined) == 10
    assert result(ran) == result(run(cluster(LEVELS, objects), alone))
    assert len(set(asked)) < len(set(asked_alone)) == 10


def random_world(seed: int, of: str) -> list[Object]:
    """Nodes that gangs of all sizes fill, and gangs of several shapes that come before them."""
    dice = np.random.default_rng(seed)
    room = {f"n{i}": int(dice.integers(4, 9)) for i in range(5)}
    found: list[Object] = [node(name, cpu) for name, cpu in room.items()]
    for j in range(12):
        cpu = int(dice.choice([1, 1, 1, 2]))
        group, *members = gang(f"low{j}", 5, int(dice.integers(0, 4)), of, cpu=cpu, creation=float(dice.integers(0, 3)))
        places = [_take(room, name, cpu) for name in dice.permutation(list(room)).tolist()]
        found += [group, *(_on(pod, name) for pod, name in zip(members, places, strict=True) if name)]
    for j in range(4):
        count, cpu = int(dice.integers(2, 8)), int(dice.choice([1, 1, 2]))
        found += gang(f"high{j}", count, int(dice.integers(1, count + 1)), level="high", cpu=cpu, creation=5.0 + j)
    return found


def _take(room: dict[str, int], name: str, cpu: int) -> str:
    if room[name] < cpu:
        return ""
    room[name] -= cpu
    return name


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_decisions_conditions_and_counts_are_those_of_one_after_the_other(action: str) -> None:
    followed = 0
    for seed in range(8):
        objects = random_world(seed, "default" if action == "preempt" else "other")
        objects += [queue("default"), queue("other")] if action == "reclaim" else []
        (together, asked), (alone, _) = watched(action, by_job=True), watched(action, by_job=False)
        got, wanted = run(cluster(LEVELS, objects), together), run(cluster(LEVELS, objects), alone)
        assert result(got) == result(wanted), seed
        followed += len(set(got.pipelined) - set(asked))
    assert followed > 0


def test_a_pod_that_is_nominated_to_a_node_that_is_gone_does_not_follow_others() -> None:
    """Nobody is evicted for it: it waits for its nomination to be taken back."""
    group, *members = gang("high", 4, 3, level="high", creation=9.0)
    members = [replace(pod, nominated_node="gone") if i == 1 else pod for i, pod in enumerate(members)]
    objects = [*one_each(4), group, *members]
    together, alone = watched("preempt", by_job=True)[0], watched("preempt", by_job=False)[0]
    ran = run(cluster(LEVELS, objects), together)
    assert sorted(ran.pipelined) == ["ns/high-0", "ns/high-2", "ns/high-3"]
    assert result(ran) == result(run(cluster(LEVELS, objects), alone))
