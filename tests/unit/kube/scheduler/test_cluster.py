"""What the cluster port answers at once, from what is known: refusals, whole gangs, news and echoes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pumice.kube.scheduler.cluster import KubeCluster
from pumice.kube.writers.writing import AS_VOLCANO_DOES, Limits, Writing
from pumice.model.decisions import Bind, Evict, PodNotice, Refusal
from pumice.model.events import Gone, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.testing.build import node, pod
from tests.unit.kube.silence import SILENT


def cluster_of(*pods: Pod, writing: Writing = AS_VOLCANO_DOES) -> KubeCluster:
    made = KubeCluster(SILENT, writing)
    made.sink([Seen(node("n1")), *(Seen(each) for each in pods)])
    return made


def bind_of(what: Pod, on: str = "n1", job: str = "ns/job") -> Bind:
    return Bind(what.key, what.uid, on, job)


def evict_of(what: Pod) -> Evict:
    return Evict(what.key, what.uid, what.node_name, "ns/job", "preempt")


_P = pod("p", resource_version="1")


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        pytest.param(Gone(Pod, "ns/p"), "pod ns/p does not exist", id="gone"),
        pytest.param(Seen(replace(_P, uid="other")), "pod ns/p was replaced: uid other, not ns-p", id="another"),
        pytest.param(Seen(replace(_P, deletion=1.0)), "pod ns/p is being deleted", id="leaving"),
        pytest.param(Seen(replace(_P, phase="Failed")), "pod ns/p has failed", id="ended"),
        pytest.param(Seen(replace(_P, node_name="n2")), "pod ns/p is already on node n2", id="bound"),
        pytest.param(Gone(Node, "n1"), "node n1 does not exist", id="node gone"),
    ],
)
def test_a_pod_that_changed_since_the_snapshot_is_not_bound(meanwhile: Seen | Gone, why: str) -> None:
    cluster = cluster_of(_P)
    cluster.sink([meanwhile])
    assert cluster.bind(bind_of(_P)) == Refusal(why)
    assert cluster.binds.left == 0


def test_one_decision_a_pod_at_a_time() -> None:
    running = pod("r", on="n1")
    cluster = cluster_of(_P, running)
    assert cluster.bind(bind_of(_P)) is None
    assert cluster.bind(bind_of(_P)) == Refusal("pod ns/p is on its way to n1")
    assert cluster.evict(evict_of(running)) is None
    assert cluster.evict(evict_of(running)) == Refusal("pod ns/r is being evicted already")


def test_an_eviction_takes_the_place_of_a_bind_on_its_way() -> None:
    cluster = cluster_of(_P)
    assert cluster.bind(bind_of(_P)) is None
    assert cluster.evict(Evict(_P.key, _P.uid, "n1", "ns/job", "preempt")) is None
    entry = cluster.in_flight.of(_P.key)
    assert entry is not None
    assert isinstance(entry.decision, Evict)


def test_a_gang_is_taken_whole_or_not_at_all() -> None:
    """The limit counts where a job begins: the one that crosses it is taken whole, the next is refused whole."""
    gangs = {job: [pod(f"{job}-{i}") for i in range(3)] for job in ("a", "b", "c")}
    cluster = cluster_of(*(each for gang in gangs.values() for each in gang), writing=Writing(Limits(binds=4)))
    answers = {
        job: [cluster.bind(bind_of(each, job=f"ns/{job}")) is None for each in gang] for job, gang in gangs.items()
    }
    assert answers == {"a": [True] * 3, "b": [True] * 3, "c": [False] * 3}


def test_a_gang_larger_than_twice_the_limit_is_cut() -> None:
    gang = [pod(f"p{i}") for i in range(6)]
    cluster = cluster_of(*gang, writing=Writing(Limits(binds=2)))
    assert [cluster.bind(bind_of(each)) is None for each in gang] == [True] * 4 + [False] * 2


def test_where_the_first_of_a_gang_is_refused_the_others_are_until_the_next_cycle() -> None:
    gang = [pod(f"p{i}") for i in range(3)]
    cluster = cluster_of(*gang)
    cluster.sink([Gone(Pod, gang[0].key)])
    assert cluster.bind(bind_of(gang[0])) == Refusal("pod ns/p0 does not exist")
    assert cluster.bind(bind_of(gang[1])) == Refusal("another pod of ns/job was refused")
    cluster.drain()
    assert [cluster.bind(bind_of(each)) for each in gang[1:]] == [None, None]


def test_a_refusal_within_a_gang_does_not_refuse_the_rest() -> None:
    """Those before it are on their way: it is better for the gang to have as many as can be."""
    gang = [pod(f"p{i}") for i in range(3)]
    cluster = cluster_of(*gang)
    cluster.sink([Gone(Pod, gang[1].key)])
    assert [cluster.bind(bind_of(each)) is None for each in gang] == [True, False, True]


def _bound(what: Pod) -> Pod:
    return replace(what, node_name="n1", resource_version="2")


@pytest.mark.parametrize(
    ("event", "wakes"),
    [
        pytest.param(Seen(_bound(_P)), False, id="our own bind"),
        pytest.param(Seen(replace(_bound(_P), node_name="n2")), True, id="another's bind"),
        pytest.param(Seen(replace(_P, labels={"a": "b"})), True, id="a change before it is bound"),
        pytest.param(Gone(Pod, _P.key), True, id="its end"),
        pytest.param(Seen(pod("q")), True, id="another pod"),
    ],
)
def test_echoes_wake_nobody(event: Seen | Gone, wakes: bool) -> None:
    cluster = cluster_of(_P)
    cluster.bind(bind_of(_P))
    woken: list[bool] = []
    cluster.changed = lambda: woken.append(True)
    cluster.sink([event])
    assert bool(woken) is wakes
    assert cluster.drain()[-1] == event, "it is told all the same"


@pytest.mark.parametrize(
    ("said", "wakes"),
    [
        pytest.param(node("n1", resource_version="7"), False, id="heartbeat"),
        pytest.param(node("n1", resource_version="7", labels={"a": "b"}), True, id="change"),
        pytest.param(node("n2"), True, id="new"),
    ],
)
def test_heartbeats_of_nodes_wake_nobody(said: Node, wakes: bool) -> None:
    """A thousand of them are several a second."""
    cluster = cluster_of(_P)
    woken: list[bool] = []
    cluster.changed = lambda: woken.append(True)
    cluster.sink([Seen(said)])
    assert bool(woken) is wakes


@pytest.mark.parametrize(
    ("change", "is_in_flight"),
    [
        pytest.param(_bound, False, id="bound"),
        pytest.param(lambda p: replace(p, deletion=1.0), False, id="leaving"),
        pytest.param(lambda p: replace(p, phase="Failed"), False, id="ended"),
        pytest.param(lambda p: replace(p, uid="other"), False, id="another"),
        pytest.param(lambda p: replace(p, labels={"a": "b"}), True, id="only changed"),
    ],
)
def test_when_a_bind_is_over(change: Callable[[Pod], Pod], is_in_flight: bool) -> None:
    cluster = cluster_of(_P)
    cluster.bind(bind_of(_P))
    cluster.sink([Seen(change(_P))])
    assert (len(cluster.in_flight) == 1) is is_in_flight


def test_nothing_is_said_of_a_pod_that_is_on_its_way() -> None:
    cluster = cluster_of(_P)
    cluster.bind(bind_of(_P))
    cluster.notice(PodNotice(_P.key, _P.uid, "Unschedulable", "no room"))
    assert cluster._notice_work_queue.left == 0
