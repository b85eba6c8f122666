"""The cluster port: what is accepted, what is refused, and which events follow."""

from __future__ import annotations

import pytest

from pumice.model.decisions import Bind, Evict, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import Gone, PodsGone, PodsSeen, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.sim.workloads.spans import DURATION_ANNOTATION
from tests.unit.sim.kit import bind, node, pod, resource, seen


def cluster(**options: float) -> SimCluster:
    made = SimCluster(Engine(), **options)
    for obj in (node("n0"), node("n1"), pod("a"), pod("b")):
        made.put(obj)
    made.drain()
    return made


def test_bind_puts_the_pod_on_its_node_and_the_kubelet_starts_it() -> None:
    made = cluster(start_latency_s=3)
    bind(made, "ns/a", "n0")
    assert made.pods["ns/a"].node_name == "n0"
    assert made.pods_on == {"n0": {"ns/a": None}}
    assert [p.phase for p in seen(made.drain(), Pod)] == ["Pending"]
    made.engine.advance(3)
    found = made.pods["ns/a"]
    assert (found.phase, found.start_time) == ("Running", 3)
    assert [p.phase for p in seen(made.drain(), Pod)] == ["Running"]


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (Bind("ns/x", "u", "n0", ""), "pod ns/x does not exist"),
        (Bind("ns/a", "old", "n0", ""), "pod ns/a was replaced: uid uid-a, not old"),
        (Bind("ns/a", "uid-a", "n9", ""), "node n9 does not exist"),
        (Bind("ns/b", "uid-b", "n1", ""), "pod ns/b is already on node n0"),
    ],
)
def test_bind_refuses(decision: Bind, why: str) -> None:
    made = cluster()
    bind(made, "ns/b", "n0")
    assert made.submit([decision]) == {0: Refusal(why)}
    assert made.pods["ns/a"].node_name == ""
    assert (made.binds_done, made.refusals) == (1, 1)


def test_a_pod_that_says_how_long_it_runs_succeeds_then() -> None:
    made = cluster()
    made.put(pod("c", annotations={DURATION_ANNOTATION: "90m"}))
    bind(made, "ns/c", "n0")
    made.engine.advance(90 * 60 - 1)
    assert made.pods["ns/c"].phase == "Running"
    made.engine.advance(90 * 60)
    assert made.pods["ns/c"].phase == "Succeeded"
    assert made.pods_on["n0"] == {}


def test_evict_deletes_at_once_without_grace() -> None:
    made = cluster()
    bind(made, "ns/a", "n0")
    made.engine.advance(0)
    made.drain()
    assert not made.submit([Evict("ns/a", "uid-a", "n0", "", "preempt")])
    assert made.drain() == [PodsGone(("ns/a",))]
    assert made.submit([Evict("ns/a", "uid-a", "n0", "", "preempt")]) == {0: Refusal("pod ns/a does not exist")}


def test_evict_with_grace_holds_the_room_until_the_end() -> None:
    made = cluster(grace_s=30)
    bind(made, "ns/a", "n0")
    assert not made.submit([Evict("ns/a", "uid-a", "n0", "", "preempt")])
    assert made.pods["ns/a"].deletion == 30
    assert "ns/a" in made.pods_on["n0"]
    assert made.submit([Evict("ns/a", "uid-a", "n0", "", "preempt")]) == {0: Refusal("pod ns/a is being deleted")}
    made.engine.advance(30)
    assert "ns/a" not in made.pods
    assert made.pods_on["n0"] == {}


def test_a_vanished_node_takes_its_pods_along() -> None:
    made = cluster()
    bind(made, "ns/a", "n0")
    bind(made, "ns/b", "n1")
    made.engine.advance(0)
    made.drain()
    assert made.delete(Node, "n0")
    assert not made.delete(Node, "n0")
    assert made.drain() == [Gone(Node, "n0"), PodsGone(("ns/a",))]
    assert list(made.pods) == ["ns/b"]


def test_only_the_newest_state_of_an_object_is_delivered_but_never_across_its_end() -> None:
    made = cluster()
    bind(made, "ns/a", "n0")
    made.engine.advance(0)  # bound, then running
    made.delete(Pod, "ns/a")
    made.put(pod("a"))
    made.put(node("n0", cpu=8))
    events = made.drain()
    assert [type(event) for event in events] == [PodsSeen, PodsGone, PodsSeen, Seen]
    assert [p.phase for p in seen(events, Pod)] == ["Running", "Pending"]


def test_what_is_held_back_is_delivered_in_order() -> None:
    made = cluster()
    made.undelivered.delay = lambda event: 10.0 if isinstance(event, Seen) and isinstance(event.obj, Pod) else 0.0
    bind(made, "ns/a", "n0")
    made.engine.advance(1)
    made.undelivered.delay = None
    made.delete(Pod, "ns/a")
    made.put(pod("c"))
    assert [p.name for p in seen(made.drain(), Pod)] == ["c"]
    assert made.undelivered.owes(Pod, "ns/a")
    made.engine.advance(10)
    assert [type(event) for event in made.drain()] == [PodsSeen, PodsGone]
    assert not made.undelivered.owes(Pod, "ns/a")


def test_a_scheduler_that_starts_anew_gets_everything_once_and_nothing_late() -> None:
    made = cluster()
    made.undelivered.delay = lambda event: 10.0
    bind(made, "ns/a", "n0")
    made.delete(Pod, "ns/b")
    made.relist()
    events = made.drain()
    assert sorted(each.name for kind in (Pod, Node) for each in seen(events, kind)) == ["a", "n0", "n1"]
    assert [p.node_name for p in seen(events, Pod)] == ["n0"]
    made.engine.advance(100)  # what was held back is not delivered after all
    assert [p.phase for p in seen(made.drain(), Pod)] == ["Running"]


def test_statuses_are_stored_and_are_no_news() -> None:
    made = cluster()
    made.put(PodGroup("ns", "g", "u"))
    made.put(Queue("q"))
    made.drain()
    status = PodGroupStatus("Inqueue")
    made.write_group(PodGroupUpdate("ns/g", status))
    made.write_queue("q", resource(3))
    made.notice(PodNotice("ns/a", "uid-a", "Unschedulable", "no room", "n1"))
    assert not made.has_news
    assert made.groups["ns/g"].status == status
    assert made.queues["q"].allocated == resource(3)
    reports = made.pods["ns/a"]
    assert (reports.nominated_node, reports.conditions[0].message) == ("n1", "no room")
    assert len(made.drain()) == 3

    made.write_group(PodGroupUpdate("ns/g", status))  # the same again, or about nothing
    made.write_group(PodGroupUpdate("ns/none", status))
    made.write_queue("none", resource(1))
    made.notice(PodNotice("ns/a", "uid-a", "Unschedulable", "no room", "n1"))
    made.notice(PodNotice("ns/a", "older", "Unschedulable", "no room"))
    assert made.drain() == []


def test_a_bind_is_no_news_but_a_start_is() -> None:
    made = cluster()
    bind(made, "ns/a", "n0")
    assert not made.has_news
    made.engine.advance(0)
    assert made.has_news


def test_only_bind_moves_a_pod() -> None:
    made = cluster()
    with pytest.raises(ValueError, match="only bind moves a pod"):
        made.put(pod("a", node_name="n1"))


def test_a_pod_of_the_same_name_and_another_uid_replaces_the_old_one() -> None:
    made = cluster()
    bind(made, "ns/a", "n0")
    made.put(Pod("ns", "a", "new", made.pods["ns/b"].spec))
    assert made.pods_on["n0"] == {}
    assert made.pods["ns/a"].uid == "new"


def test_pods_that_run_already_hold_room() -> None:
    made = cluster()
    made.put(pod("r", node_name="n0", phase="Running", annotations={DURATION_ANNOTATION: "10s"}))
    made.put(pod("s", node_name="n0", phase="Succeeded"))
    assert list(made.pods_on["n0"]) == ["ns/r"]
    made.engine.advance(10)
    assert made.pods["ns/r"].phase == "Succeeded"


def test_of_pods_delivered_together_those_that_changed_since_come_later() -> None:
    made = cluster()
    made.add_pods({f"ns/{name}": pod(name) for name in "xyz"})
    made.put(node("n2"))
    bind(made, "ns/y", "n0")
    made.remove_pods(("ns/x", "ns/z"))
    (pods, nodes, later, gone) = made.drain()
    assert isinstance(pods, PodsSeen) and list(pods.pods) == ["ns/x", "ns/z"]
    assert nodes == Seen(made.nodes["n2"])
    assert later == PodsSeen({"ns/y": made.pods["ns/y"]})
    assert gone == PodsGone(("ns/x", "ns/z"))
