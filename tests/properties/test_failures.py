"""A failure that is taken over from a like job is the failure that trying would have found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.columns.views import Job, Queue, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import Invalid
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import NOW
from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import CAPACITY, QueueLimit
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.pod import QUEUE_GATE, Affinity, LabelSelector, Pod, PodAffinityTerm, Requirement
from pumice.model.queue import PriorityClass
from pumice.reasons.blockers import blockers_of
from pumice.reasons.nearest import NearestBlockers, why_pods_wait
from pumice.state.store import Store
from pumice.testing.build import Ran, cluster, node, pod, podgroup, policy, queue, resource, run
from pumice.volcano.failures.failures import Failures
from tests.properties.plugins import FewEach

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}MORE]
"""
MORE = {
    "plain": "",
    "proportion": ", {name: overcommit}, {name: proportion}, {name: binpack}",
    "topology": ", {name: network-topology-aware, arguments: {hypernode.binpack.normal-pod.enable: false}}",
    "limit": ", {name: few-each}",
    "deadlines": ", {name: sla}",
    "single jobs": ", {name: odd-names}",
    "single pods": ", {name: network-topology-aware}",
}


@plugin("not-yet")
@points.allocatable(reads=(NOW,))
def not_yet(ssn: Session, queue: Queue, task: Task) -> bool:
    """No queue has room at first."""
    return ssn.now > 50.0


@plugin("odd-names")
@points.job_valid
def odd_names(ssn: Session, job: Job) -> Invalid | None:
    """Looks at what no signature knows."""
    return None if int(job.group.name[1:]) % 2 else Invalid("Even", "its name is even")


class Kind(NamedTuple):
    """What equal jobs have in common. ``tasks``: (cpu, gpu, role, gates, priority) each; ``shy``: keeps away from pods
    with the label ``app: b``."""

    tasks: tuple[tuple[int, int, str, tuple[str, ...], int], ...]
    minimum: int
    roles: tuple[tuple[str, int], ...]
    shy: bool


ASKS = st.sampled_from([(1, 0), (1, 0), (2, 0), (3, 0), (1, 1), (0, 0)])
GATES = st.sampled_from([(), (), (), (), (QUEUE_GATE,), ("example.com/wait",)])


@st.composite
def kinds(draw: st.DrawFn) -> Kind:
    tasks = tuple(
        (*draw(ASKS), draw(st.sampled_from(["ps", "worker"])), draw(GATES), draw(st.sampled_from([1, 1, 5])))
        for _ in range(draw(st.integers(1, 4)))
    )
    roles = draw(st.sampled_from([(), (), (("ps", 1),), (("worker", 2), ("ps", 1))]))
    return Kind(
        tasks, draw(st.sampled_from([0, *range(1, len(tasks) + 1), len(tasks)])), roles, shy=draw(st.booleans())
    )


def shyness() -> Affinity:
    of_b = LabelSelector((Requirement("app", "In", ("b",)),))
    return Affinity(anti_required=(PodAffinityTerm("kubernetes.io/hostname", of_b, ("ns",)),))


def gang(name: str, kind: Kind, app: str, **group: object) -> list[Object]:
    """The PodGroup and the pods of a job of the kind."""
    found: list[Object] = [podgroup(name, kind.minimum, roles=dict(kind.roles), **group)]
    for i, (cpu, gpu, role, gates, priority) in enumerate(kind.tasks):
        about = {"affinity": shyness()} if kind.shy else {}
        memory = "1Gi" if cpu else 0
        labels = {"app": app} if app else None
        found.append(
            pod(
                f"{name}-{i}", name, cpu, memory, gpu, role=role, gates=gates, priority=priority, labels=labels, **about
            )
        )
    return found


@st.composite
def crowds(draw: st.DrawFn) -> list[Object]:
    """Few nodes, some of them about to become free, and more jobs than fit, many of them equal. In some, pods prefer to
    be away from others."""
    prefers = draw(st.integers(0, 2)) == 0
    found: list[Object] = [PriorityClass("high", 1000), queue("a", 2), queue("c")]
    found.append(queue("b", capability=draw(st.sampled_from([None, resource(3, "8Gi")]))))
    for n in range(draw(st.integers(1, 3))):
        found.append(node(f"n{n}", draw(st.sampled_from([1, 2, 4])), gpu=draw(st.sampled_from([0, 1]))))
        if draw(st.booleans()):  # something runs there
            leaves = draw(st.sampled_from([None, 5.0]))
            more = {"affinity": shyness()} if prefers and draw(st.booleans()) else {}
            found.append(pod(f"old-{n}", "old", 1, on=f"n{n}", deletion=leaves, **more))
    found.append(podgroup("old", 1, "a", phase="Running"))
    known = draw(st.lists(kinds(), min_size=1, max_size=3))
    for g in range(draw(st.integers(6, 16))):
        kind = draw(st.sampled_from(known))
        found += gang(
            f"g{g}",
            kind._replace(shy=kind.shy and prefers),
            draw(st.sampled_from(["", "", "a", "b"])),
            queue=draw(st.sampled_from(["a", "a", "b", "c"])),
            creation=float(draw(st.integers(0, 3))),
            priority_class=draw(st.sampled_from(["", "", "high"])),
            phase=draw(st.sampled_from(["Pending", "Inqueue", "Inqueue"])),
        )
    return found


@pytest.fixture
def failed() -> Iterator[list[int]]:
    """Jobs that were tried and failed."""
    found: list[int] = []
    keep = Failures.keep

    def noting(self: Failures, job: int, attempt: Attempt, *more: int) -> None:
        found.append(job)
        keep(self, job, attempt, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Failures, "keep", noting)
        yield found


def cycle(objects: list[Object], more: str, *, keeps: bool = True) -> Ran:
    """A cycle, with failures that are taken over and without."""
    conf = CONF.replace("MORE", more)
    return run(cluster(objects), conf, now=50.0, memo=Memo(keeps=keeps), plugins=(FewEach, odd_names))


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
@given(objects=crowds())
@settings(max_examples=15, deadline=None)
def test_same_with_and_without(more: str, objects: list[Object]) -> None:
    ours, plain = cycle(objects, more), cycle(objects, more, keeps=False)
    assert ours.decisions == plain.decisions
    assert ours.pipelined == plain.pipelined
    assert ours.outcome.groups == plain.outcome.groups
    assert list(ours.outcome.notices()) == list(plain.outcome.notices())
    assert blockers_of(ours.outcome) == blockers_of(plain.outcome)
    assert why_pods_wait(NearestBlockers(ours.outcome)) == why_pods_wait(NearestBlockers(plain.outcome))


@st.composite
def later(draw: st.DrawFn) -> list[Event]:
    """What happens between two cycles: more jobs, room that comes free, a queue that may have more, pods that prefer to
    be alone; often nothing that a waiting job would notice."""
    found: list[Event] = []
    for _ in range(draw(st.integers(0, 2))):
        n, what = draw(st.integers(0, 2)), draw(st.integers(0, 4))
        match what:
            case 0:
                kind = Kind((((1, 0, "worker", (), 1),) * draw(st.integers(1, 3))), 1, (), shy=draw(st.booleans()))
                found += map(Seen, gang(f"later-{draw(st.integers(0, 5))}", kind, "b", queue="b", phase="Inqueue"))
            case 1:
                found.append(Gone(Pod, f"ns/old-{n}"))
            case 2:
                found.append(Seen(queue("a", draw(st.integers(1, 5)))))
            case 3:
                found.append(Seen(podgroup(f"new-{n}", 1, queue="c", phase="Pending")))
            case _:
                found.append(Seen(pod(f"old-{n}", "old", 1, on=f"n{n}", affinity=shyness())))
    return found


def story_of(store: Store, changes: list[list[Event]], conf: Policy, *, keeps: bool) -> list[Any]:
    """All that comes of a cycle at first, and after each of the changes; statuses are written."""
    found, memo = [], Memo(keeps=keeps)
    for i, events in enumerate([[], *changes]):
        for event in events:
            store.apply(event)
        ran = run(store, conf, now=50.0 + i, memo=memo)
        outcome = ran.outcome
        found.append((ran.decisions, outcome.groups, list(outcome.notices()), outcome.entries))
        found.append((NearestBlockers(outcome).by_key(), why_pods_wait(NearestBlockers(outcome))))
        store.remember(outcome.writes)
        groups = {group.key: group for group in outcome.tables.jobs.groups if group is not None}
        for update in outcome.groups:
            store.apply(Seen(replace(groups[update.job], status=update.status)))
        store.assume(ran.decisions)
    return found


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
@given(objects=crowds(), changes=st.lists(later(), min_size=2, max_size=5))
@settings(max_examples=12, deadline=None)
def test_same_with_and_without_what_the_last_cycle_found(
    more: str, objects: list[Object], changes: list[list[Event]]
) -> None:
    conf = policy(CONF.replace("MORE", more), plugins=(FewEach, odd_names))
    ours = story_of(cluster(objects), changes, conf, keeps=True)
    assert ours == story_of(cluster(objects), changes, conf, keeps=False)


ONE = Kind(((1, 0, "worker", (), 1),), 1, (), shy=False)
LARGE = Kind(((9, 0, "worker", (), 1),), 1, (), shy=False)


def hopeless(count: int, **first: Any) -> list[Object]:
    """So many equal jobs that fit nowhere; ``first``: what the PodGroup of the first one has beside."""
    found: list[Object] = [node("n0", 4), queue("a")]
    for number in range(1, 2 * count, 2):
        found += gang(f"g{number}", LARGE, "", queue="a", **(first if number == 1 else {}))
    return found


@pytest.mark.parametrize(
    ("more", "objects", "tried"),
    [
        pytest.param("", hopeless(4), 1, id="one fails for all"),
        pytest.param(", {name: sla}", hopeless(4), 1, id="nobody has a deadline"),
        pytest.param(
            ", {name: sla}",
            hopeless(4, annotations={"sla-waiting-time": "1s"}),
            4,
            id="one has a deadline: each is asked about",
        ),
        pytest.param(", {name: odd-names}", hopeless(4), 4, id="a plugin that looks at each job"),
    ],
)
def test_how_many_jobs_are_tried(failed: list[int], more: str, objects: list[Object], tried: int) -> None:
    """Jobs fail in common unless a hook looks at the single job: then each is tried."""
    conf = CONF.replace("MORE", more).replace("enqueue, allocate, backfill", "allocate")
    run(cluster(objects), conf, now=50.0, plugins=(FewEach, odd_names))
    assert len(failed) == tried


def test_a_job_that_differs_in_a_label_that_others_mind_is_tried() -> None:
    """The first fails for its label only."""
    objects: list[Object] = [node("n0", 4), queue("a"), podgroup("old", 1, "a", phase="Running")]
    objects.append(pod("old-0", "old", 1, on="n0", affinity=shyness()))
    objects += gang("g0", ONE, "b", queue="a") + gang("g1", ONE, "c", queue="a")
    ours, plain = cycle(objects, ""), cycle(objects, "", keeps=False)
    assert ours.binds == plain.binds == {"ns/g1-0": "n0"}


def test_a_job_that_is_ready_without_a_task_comes_back_for_each() -> None:
    """An attempt ends at the first task that fits nowhere, so what it found is not all there is to find."""
    two = Kind(((3, 0, "worker", (), 1), (3, 0, "ps", (), 1)), 0, (), shy=False)
    objects: list[Object] = [
        node("n0", 2),
        queue("a"),
        *gang("g0", two, "", queue="a"),
        *gang("g1", two, "", queue="a"),
    ]
    ours, plain = cycle(objects, ""), cycle(objects, "", keeps=False)
    said = {notice.message for notice in ours.outcome.notices()}
    assert said == {"0/1 nodes are unavailable: 1 Insufficient cpu."}
    assert list(ours.outcome.notices()) == list(plain.outcome.notices())


def test_a_failure_is_not_taken_over_when_the_queue_has_room_by_now() -> None:
    conf = policy(CONF.replace("MORE", ", {name: not-yet}"), plugins=(not_yet,))
    store = cluster([node("n0", 4), queue("a"), *gang("g0", ONE, "", queue="a")])
    (first, _, _, reports), _, (second, *_), _ = story_of(store, [[]], conf, keeps=True)
    assert not first
    assert [entry.finding for entry in reports if entry.action == "allocate"] == [QueueLimit("a", CAPACITY)]
    assert [decision.pod for decision in second] == ["ns/g0-0"]
