"""What queues deserve follows what is asked for, not what the scheduler has admitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.report.summary import Summary, jain
from pumice.sim.measures.fairness import Fairness
from tests.unit.report.kit import inputs, job, node, queue, summary_of
from tests.unit.sim import kit


def eight_cores(*queues: Queue) -> Fairness:
    fairness = Fairness({each.name: each for each in queues})
    fairness.node(kit.node("n0", cpu=8), 1)
    return fairness


def cores(count: float) -> tuple[tuple[str, float], ...]:
    return (("cpu", 1000.0 * count),)


def deserved(fairness: Fairness) -> dict[str, float]:
    fairness.settle(0.0)
    return {name: found.deserved for name, found in fairness.queues().items()}


def test_the_cluster_by_weight_of_what_is_asked_for() -> None:
    fairness = eight_cores(Queue("light"), Queue("heavy", weight=3))
    fairness.ask("light", cores(12), 1)
    assert deserved(fairness) == {"light": 1.0} and fairness.contended
    fairness.ask("heavy", cores(16), 1)
    assert deserved(fairness) == pytest.approx({"light": 0.25, "heavy": 0.75})
    fairness.ask("heavy", cores(14), -1)
    assert deserved(fairness) == pytest.approx({"light": 0.75, "heavy": 0.25})
    fairness.ask("light", cores(11), -1)
    assert deserved(fairness) == pytest.approx({"light": 0.125, "heavy": 0.25})
    assert not fairness.contended


def test_guarantees_and_limits_hold() -> None:
    limited = Queue("limited", capability=Resource(2000.0, 0.0))
    promised = Queue("promised", guarantee=Resource(5000.0, 0.0))
    fairness = eight_cores(limited, promised, Queue("plain"))
    for name in ("limited", "promised", "plain"):
        fairness.ask(name, cores(20), 1)
    assert deserved(fairness) == pytest.approx({"limited": 1.5 / 8, "promised": 5 / 8, "plain": 1.5 / 8})
    fairness.ask("promised", cores(18), -1)
    assert deserved(fairness) == pytest.approx({"limited": 2 / 8, "promised": 2 / 8, "plain": 4 / 8})


def test_a_resource_that_comes_late_and_one_that_is_not_there() -> None:
    fairness = eight_cores(Queue("a"))
    fairness.ask("a", (("cpu", 4000.0), ("example.com/dongle", 1000.0)), 1)
    assert deserved(fairness) == {"a": 0.5}
    room = Resource(0.0, 0.0, {"example.com/dongle": 2000.0})
    fairness.node(Node("n1", room, room, uid="n1"), 1)
    fairness.hold("a", (("example.com/dongle", 2000.0),), 1)
    assert deserved(fairness) == {"a": 0.5}
    assert fairness.queues()["a"].share == 1.0


def test_in_a_queue_that_is_not_there_nothing_is_deserved() -> None:
    fairness = eight_cores(Queue("a"))
    fairness.ask("gone", cores(99), 1)
    assert deserved(fairness) == {} and not fairness.contended


#: Weights 1 and 3, four jobs of three and four of four cores at once, on eight cores: the light queue goes first.
KEPT_WAITING = (
    node("n1", 8),
    queue("a-light", 1),
    queue("b-heavy", 3),
    *(job(f"three-{i}", queue="a-light", cpu=3, seconds=100) for i in range(4)),
    *(job(f"four-{i}", queue="b-heavy", cpu=4, seconds=100) for i in range(4)),
)


@pytest.fixture
def kept_waiting(tmp_path: Path) -> Summary:
    return summary_of(inputs(tmp_path, KEPT_WAITING))


def test_a_queue_that_is_kept_waiting_does_not_deserve_less(kept_waiting: Summary) -> None:
    light, heavy = kept_waiting.queues
    assert heavy.wait is not None and heavy.wait.p50 == 203.0
    end = kept_waiting.run.result.now
    assert light.deserved * end == pytest.approx(0.25 * 202, rel=0.01)
    assert heavy.deserved * end == pytest.approx(0.75 * 202 + 1.0 * 202, rel=0.01)


def test_fairness_over_all_time_and_while_contended(kept_waiting: Summary) -> None:
    fairness = kept_waiting.fairness
    light, heavy = 1200 / 404, 1600 / 2828  # core-seconds had over core-seconds deserved
    assert fairness.jain == pytest.approx((light + heavy) ** 2 / (2 * (light**2 + heavy**2)), rel=0.01)
    heavy = 800 / 2020  # when the last two jobs run, there is room for all that is asked for
    assert fairness.contended == pytest.approx((light + heavy) ** 2 / (2 * (light**2 + heavy**2)), rel=0.01)
    assert fairness.contended_share == pytest.approx(303 / 404, rel=0.01)


def test_pods_that_have_ended_ask_for_nothing(tmp_path: Path) -> None:
    """A gang of a PodGroup, one pod of which ends long before the other."""
    short, long = (POD.format(name=name, seconds=seconds) for name, seconds in (("short", 10), ("long", 100)))
    group = GROUP.format(minimum=1)
    found = summary_of(inputs(tmp_path, [node("n1", 4), queue("a"), group, short, long]))
    (only,) = found.queues
    assert only.deserved * found.run.result.now == pytest.approx(0.25 * (11 + 101), rel=0.02)


GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: pair}}
spec: {{minMember: {minimum}, queue: a}}
---"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations: {{scheduling.k8s.io/group-name: pair, pumice.dev/duration: "{seconds}s"}}
spec: {{schedulerName: volcano, containers: [{{name: main, resources: {{requests: {{cpu: "1"}}}}}}]}}
---"""


def test_of_a_resource_in_plenty_a_queue_deserves_no_more_than_it_can_use() -> None:
    """10 GPUs and 100 cores; jobs of queue a ask for a GPU and a core, those of b for a GPU and 8 cores.

    a asks for 10 GPUs, b for 9 with 72 cores: GPUs are short, cores are not. Each resource shared by itself, b would
    deserve all 72 cores, its dominant share, but with half the GPUs it can use 40. a holds 4 GPUs and b 6.
    """
    fairness = Fairness({name: Queue(name) for name in ("a", "b")})
    room = Resource(100_000.0, 0.0, {"nvidia.com/gpu": 10_000.0})
    fairness.node(Node("n0", room, room, uid="n0"), 1)
    for name, asked, held, each in (("a", 10, 4, 1), ("b", 9, 6, 8)):
        for ask, jobs in ((fairness.ask, asked), (fairness.hold, held)):
            ask(name, (("cpu", 1000.0 * jobs * each), ("nvidia.com/gpu", 1000.0 * jobs)), 1)
    assert deserved(fairness) == pytest.approx({"a": 0.5, "b": 0.5})
    assert fairness.contended
    shares = {name: found.share for name, found in fairness.queues().items()}
    assert shares == pytest.approx({"a": 0.4, "b": 0.6})
    # 0.8 and 1.2 of what they deserve: (0.8 + 1.2)² / (2 · (0.64 + 1.44)) = 25 / 26.
    assert jain([0.4 / 0.5, 0.6 / 0.5]) == pytest.approx(25 / 26) and round(25 / 26, 4) == 0.9615
    assert jain([shares[name] / found.deserved for name, found in fairness.queues().items()]) == pytest.approx(25 / 26)
    # With 0.72 of the cores as b's due it would look almost even.
    assert jain([0.4 / 0.5, 0.6 / 0.72]) == pytest.approx(0.9996, abs=5e-5)
