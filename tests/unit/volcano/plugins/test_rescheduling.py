"""rescheduling: who leaves busy nodes, when, and what a policy file may say."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.model.decisions import Writes
from pumice.model.usage import NodeUsage
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, policy, run
from pumice.testing.check import check_plugin
from pumice.volcano.plugins.rescheduling import RAN_AT

CONF = """
actions: shuffle
tiers:
- plugins:
  - name: rescheduling
    arguments:
      interval: 10m
      strategies:
      - name: lowNodeUtilization
        params: {thresholds: {cpu: 20, memory: 20}, targetThresholds: {cpu: 70, memory: 80}}
"""
BEGAN, NOW = 1000.0, 1600.0


def store(*loads: tuple[float, float], at: float = NOW, ran_at: float | None = BEGAN, **busy: Any) -> Store:
    """Nodes n0, n1, … of 10 cores with these loads, and on n0 six pods of a core."""
    priorities = [3, 1, 2, 1, 5, 4]
    pods = [pod(f"p{i}", "g", on="n0", priority=p, creation=float(i), **busy) for i, p in enumerate(priorities)]
    nodes = [node(f"n{i}", 10, creation=float(i)) for i in range(len(loads))]
    usages = [NodeUsage(f"n{i}", *load, at) for i, load in enumerate(loads)]
    found = cluster(nodes, usages, podgroup("g"), pods)
    if ran_at is not None:
        found.remember(Writes(notes={RAN_AT: ran_at}))
    return found


def evicted(state: Store, now: float = NOW) -> list[str]:
    return [key.partition("/")[2] for key in run(state, CONF, now=now).evicted]


def test_the_least_important_leave_until_the_node_is_as_busy_as_it_should_be() -> None:
    assert sorted(evicted(store((95, 30), (5, 5)))) == ["p1", "p2", "p3"]


def test_no_more_leave_than_idle_nodes_have_room_for() -> None:
    small = [node("n0", 10), node("n1", 2, creation=1.0)]
    pods = [pod(f"p{i}", "g", on="n0", creation=float(i)) for i in range(6)]
    usages = [NodeUsage("n0", 99, 30, NOW), NodeUsage("n1", 0, 0, NOW)]
    state = cluster(small, usages, podgroup("g"), pods)
    state.remember(Writes(notes={RAN_AT: BEGAN}))
    assert evicted(state) == ["p0", "p1"]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(store((95, 30), (50, 5)), id="nobody is idle"),
        pytest.param(store((60, 30), (5, 5)), id="nobody is busy"),
        pytest.param(store((95, 30), (5, 5), at=NOW - 301), id="measured too long ago"),
        pytest.param(store((95, 30), (5, 5), ran_at=NOW - 599), id="the last time was lately"),
        pytest.param(store((95, 30), (5, 5), ran_at=None), id="the scheduler has just started"),
        pytest.param(store((95, 30), (5, 5), annotations={"volcano.sh/preemptable": "false"}), id="pods that stay"),
    ],
)
def test_when_everybody_stays(state: Store) -> None:
    assert evicted(state) == []


def test_it_remembers_when_it_began_and_when_it_ran_and_wakes_for_the_next_time() -> None:
    first = run(store((95, 30), (5, 5), ran_at=None), CONF, now=NOW).outcome
    assert first.writes.notes == {RAN_AT: NOW}
    again = run(store((95, 30), (5, 5), ran_at=NOW - 100), CONF, now=NOW).outcome
    assert (again.writes.notes, again.wakes_at) == ({}, NOW + 500)
    assert run(store((95, 30), (5, 5)), CONF, now=NOW).outcome.writes.notes == {RAN_AT: NOW}


@pytest.mark.parametrize(
    ("arguments", "reports"),
    [
        ("interval: soon", "argument interval: found 'soon', wanted a duration such as 5m; it is 5m"),
        ("strategies: {a: 1}", "argument strategies: found a mapping, wanted a list of {name, params}"),
        ("strategies: [{name: offlineOnly}]", "argument strategies: found 'offlineOnly', wanted lowNodeUtilization"),
        (
            "strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 101}}}]",
            "argument strategies, thresholds.cpu: found 101, wanted a whole number, 0 to 100",
        ),
    ],
)
def test_unusable_arguments_of_a_policy_are_reported(arguments: str, reports: str) -> None:
    with pytest.raises(PolicyError) as error:
        policy(f"actions: shuffle\ntiers: [{{plugins: [{{name: rescheduling, arguments: {{{arguments}}}}}]}}]")
    assert reports in str(error.value)


def test_it_keeps_the_contract_of_plugins() -> None:
    check_plugin("rescheduling", arguments={"interval": "1s"}, seeds=range(6))
