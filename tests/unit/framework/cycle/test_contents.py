"""What a session lists: nodes, queues, jobs and tasks."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from pumice.api import CPU, PluginError, PolicyError, Queue, Session, UsageWindow, plugin, points
from pumice.framework.plugin.policy_file import read_policy
from pumice.model.pod import Pod
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, session


def test_what_runs_is_what_holds_a_place() -> None:
    there = [
        pod("runs", "g", on="n"),
        pod("waits", "g"),
        pod("ended", "g", on="n", phase="Succeeded"),
        pod("leaves", "g", on="n", deletion=1.0),
        pod("starts", on="n", phase="Pending"),
    ]
    ssn = session(cluster(node("n"), podgroup("g"), there), "tiers: []")
    assert sorted(ssn.running.names) == ["runs", "starts"]
    assert sorted(ssn.tasks.names) == ["ended", "leaves", "runs", "starts", "waits"]


def test_jobs_of_a_session_have_a_group_and_a_queue() -> None:
    ssn = session(cluster(podgroup("a"), podgroup("b", queue="nosuch"), pods("c", 1)), "tiers: []")
    assert ssn.jobs.names == ["a"]


def test_the_index_of_a_resource() -> None:
    ssn = session(cluster(node("n", 4, gpu=2), queue("q")), "tiers: []")
    gpu = ssn.resource("nvidia.com/gpu")
    assert gpu is not None
    assert ssn.total[gpu] == 2000
    assert (ssn.resource("cpu"), ssn.resource("memory"), ssn.resource("example.com/fpga")) == (0, 1, None)
    assert [each.name for each in ssn.queues] == ["q"]


# -- usage


DAY = UsageWindow("user", 86_400.0)
NOW = 1000 * 86_400.0


@plugin("keeping")
class Keeping:
    """Has the usage of users kept, and keeps what it is."""

    used: ClassVar[dict[str, Any]] = {}

    def __init__(self, ssn: Session) -> None:
        Keeping.used = {user: float(amounts[CPU]) / 3.6e6 for user, amounts in ssn.usage(DAY).items()}

    @staticmethod
    def keeps_usage() -> list[UsageWindow]:
        return [DAY]

    @points.queue_order
    def order(self, queue: Queue) -> float:
        return 0.0


def hours_of(*there: Pod) -> dict[str, float]:
    """Core-hours by user of a session with these pods."""
    state = cluster(node("n"), podgroup("g"), there)
    session(state, "tiers: [{plugins: [{name: keeping}]}]", now=NOW, plugins=[Keeping])
    return Keeping.used


def test_pods_that_run_and_pods_that_ended_are_used_together() -> None:
    ann = {"labels": {"user": "ann"}, "on": "n"}
    assert hours_of(
        pod("runs", "g", cpu=2, start_time=NOW - 3600, **ann),
        pod("leaves", "g", start_time=NOW - 3600, deletion=NOW + 30, **ann),
        pod("ended", "g", phase="Succeeded", start_time=NOW - 7200, finish_time=NOW - 3600, **ann),
        pod("bound", "g", phase="Pending", **ann),
        pod("waits", "g", labels={"user": "ann"}),
        pod("other", "g", on="n", start_time=NOW - 60),
    ) == {"ann": 4.0, "": pytest.approx(1 / 60)}


def test_a_pod_that_has_run_for_longer_counts_from_where_the_window_begins() -> None:
    (hours,) = hours_of(pod("runs", on="n", start_time=NOW - 1e7, labels={"user": "ann"})).values()
    assert hours == 23.0


def test_a_start_that_is_to_come_counts_nothing() -> None:
    assert hours_of(pod("runs", on="n", start_time=NOW + 50, labels={"user": "ann"})) == {"ann": 0.0}


def test_usage_that_is_not_kept_is_an_error() -> None:
    ssn = session(cluster(), "tiers: []")
    with pytest.raises(PluginError, match=r"usage of UsageWindow\(label='user', window_s=86400.0\) is not kept"):
        ssn.usage(DAY)
    with pytest.raises(PluginError, match="usage of 'user' is not kept"):
        ssn.usage("user")  # type: ignore[arg-type]  # as an author might


def test_a_window_that_cannot_be_kept_is_reported_as_the_policy_is_read() -> None:
    @plugin("endless")
    class Endless(Keeping):
        @staticmethod
        def keeps_usage() -> list[UsageWindow]:
            return [UsageWindow("user", 1e12)]

    with pytest.raises(PolicyError, match=r"plugins\[0\] \(endless\): usage over a window: found 1e\+12 s"):
        policy("tiers: [{plugins: [{name: endless}]}]", actions="allocate", plugins=[Endless])


@pytest.mark.parametrize(
    ("gives", "problem"),
    [
        pytest.param(ValueError("no"), "keeps_usage cannot be asked: ValueError: no", id="raises"),
        pytest.param(DAY, "keeps_usage cannot be asked: TypeError: 'UsageWindow' object is not iterable", id="no list"),
        pytest.param(["user"], "keeps_usage cannot be asked: AttributeError: 'str' object has", id="no window"),
        pytest.param([DAY] * 9, "keeps_usage: found 9 windows, wanted 8 at most", id="too many"),
        pytest.param([UsageWindow("", 3600.0)], "usage by a label: found ''", id="no label"),
    ],
)
def test_usage_that_cannot_be_kept_is_reported_and_none_is_kept(gives: Any, problem: str) -> None:
    @plugin("clumsy")
    class Clumsy(Keeping):
        @staticmethod
        def keeps_usage() -> list[UsageWindow]:
            if isinstance(gives, Exception):
                raise gives
            return gives

    registry = builtin_registry().with_plugins("volcano", [Clumsy])
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "clumsy"}]}]}
    with pytest.raises(PolicyError) as raised:
        read_policy(conf, registry)
    assert raised.value.problems[0].startswith(f"conf: tiers[0].plugins[0] (clumsy): {problem}")
    lenient = read_policy(conf, registry, strict=False)
    assert (lenient.usage_windows, len(lenient.warnings)) == ((), 1)
