"""The victim sets in which victims leave: of each job what it can spare, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.columns.rows import TaskRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup, SubGroupPolicy
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano.eviction.context import EvictionContext, EvictionKind
from pumice.volcano.eviction.gangs.victim_sets import VictimSetKind, _compare_queues, may_be_evicted, victim_sets_of

CONF = "tiers:\n- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n- plugins: [{name: predicates}]\n"
HIGH, LOW = PriorityClass("high", 100), PriorityClass("low", 1)


def gang(name: str, minimum: int, on: Iterable[str] = (), *, waits: int = 0, **more: Any) -> list[Object]:
    """A gang whose pods run on these nodes, and with so many that wait; each asks for a core."""
    special = {key: more.pop(key) for key in ("cpu", "role") if key in more}
    running = [pod(f"{name}-{i}", name, on=where, phase="Running", **special) for i, where in enumerate(on)]
    phase = "Running" if running else "Inqueue"
    return [podgroup(name, minimum, phase=phase, **more), *running, *pods(name, waits, first=len(running), **special)]


WAITING = gang("new", 1, waits=1, priority_class="high")


def split(ssn: Session, need: float = 4.0, without: str = "") -> list[tuple[str, VictimSetKind, list[str]]]:
    tables = ssn.tables
    rows = (tables.tasks.alive & (tables.tasks.node >= 0)).nonzero()[0]
    rows = rows[[tables.tasks.pods[row].name != without for row in rows.tolist()]]
    job = next(row for row, uid in enumerate(tables.jobs.uids) if uid and uid.endswith("/new"))
    amount = need * tables.classes.req[0]
    context = EvictionContext(EvictionKind.GANG_PREEMPT, Job(tables, job), hypernode=tables.tree.top)
    found = victim_sets_of(ssn, context, TaskRows(tables, rows), amount, whole=True)
    pods_of: Any = tables.tasks.pods
    return [(tables.jobs.uids[b.job].partition("/")[2], b.kind, [pods_of[row].name for row in b.rows]) for b in found]


def opened(*objects: Object | Iterable[Object]) -> Session:
    return session(cluster(HIGH, LOW, node("a", cpu=16), *objects, WAITING), CONF)


def test_a_job_is_split_into_what_it_can_spare_and_the_rest() -> None:
    assert split(opened(gang("old", 2, "aaa"))) == [
        ("old", VictimSetKind.SAFE, ["old-0"]),
        ("old", VictimSetKind.WHOLE, ["old-1", "old-2"]),
    ]


def test_a_job_below_its_minimum_can_spare_all() -> None:
    assert split(opened(gang("old", 5, "aaa"))) == [("old", VictimSetKind.SAFE, ["old-0", "old-1", "old-2"])]


def test_minima_of_roles_are_kept() -> None:
    members: list[Pod] = [
        *(pod(f"old-w{i}", "old", on="a", phase="Running", role="worker") for i in range(2)),
        pod("old-m0", "old", on="a", phase="Running", role="master"),
    ]
    found = split(opened([podgroup("old", 2, roles={"worker": 1, "master": 1}, phase="Running"), *members]))
    assert found[0] == ("old", VictimSetKind.SAFE, ["old-w0"])
    assert set(found[1][2]) == {"old-m0", "old-w1"}


def test_as_many_groups_stay_whole_as_must() -> None:
    policy = SubGroupPolicy("part", match_label_keys=("part",), sub_group_size=1, min_sub_groups=1)
    members = [pod(f"old-{i}", "old", on="a", phase="Running", labels={"part": str(i)}) for i in range(3)]
    found = split(opened([podgroup("old", 1, phase="Running", sub_groups=[policy]), *members]))
    assert [(kind, len(names)) for _, kind, names in found] == [(VictimSetKind.SAFE, 2), (VictimSetKind.WHOLE, 1)]


def test_of_equal_jobs_the_younger_one_goes_first() -> None:
    ssn = opened(gang("older", 1, "a", creation=1.0), gang("younger", 1, "a", creation=2.0))
    assert [name for name, _, _ in split(ssn)] == ["younger", "older"]


def test_a_group_that_says_nothing_may_be_evicted() -> None:
    assert may_be_evicted(podgroup("g"))


def test_a_gang_that_leaves_only_together_is_one_set_or_none() -> None:
    native = NativeGroup("scheduling.k8s.io/v1beta1", leaves_whole=True)
    listed = gang("g", 1, on="aaa")
    whole = [replace(each, native=native) if isinstance(each, PodGroup) else each for each in listed]
    assert [len(rows) for _, _, rows in split(opened(whole))] == [3]
    assert split(opened(whole), without="g-0") == [], "one of its pods is in another domain"


def test_a_comparison_of_two_queues_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ssn = opened()
    compare, asked = _compare_queues(ssn, 0), list[tuple[int, int]]()
    monkeypatch.setattr(type(ssn.order), "compare_queues", lambda _, a, b: asked.append((a, b)) or a - b)
    assert [compare(0, 1), compare(1, 0), compare(0, 1), compare(1, 1)] == [1, -1, 1, 0]
    assert len(asked) == len(set(asked)) * 2 == 4  # each direction is asked for both comparisons
