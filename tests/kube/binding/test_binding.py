"""Binding against a real server: whole gangs, every way in which a binding can fail, hooks, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.columns.dtypes import CPU
from pumice.columns.nodes import USED
from pumice.kube.api.access import bearer
from pumice.kube.api.client import STRATEGIC_PATCH, Caps, Client
from pumice.kube.api.kinds import NODES, POD_GROUPS, PODS, QUEUES
from pumice.kube.writers.writing import Limits, Timers, Writing
from pumice.model.decisions import DEVICES, Bind
from pumice.model.devices.shared_devices import ALLOCATING, ASSIGNED_IDS_ANNOTATION, BIND_PHASE_ANNOTATION, DeviceGrant
from pumice.model.events import Gone, Seen, Undone
from pumice.model.pod import Pod
from tests.kube.objects import create, pod
from tests.kube.proxy import Fault, FaultProxy, answer, hang, lose_answer, lose_request, meanwhile
from tests.kube.scheduling import Scheduling, by_hand, gang_pod, pod_group, scheduling
from tests.kube.server import ApiServer
from tests.kube.waiting import until

BINDING = r"/binding$"


async def test_a_gang_is_bound_whole_or_not_at_all(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None
) -> None:
    """Through watch, store, cycle and pipeline: a gang is bound whole, or nothing of it is sent."""
    small, large = [f"small-{i}" for i in range(4)], [f"large-{i}" for i in range(40)]
    await client.post(QUEUES.list_path, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "q"}})
    groups = [pod_group(namespace, "small", len(small)), pod_group(namespace, "large", len(large))]
    for group in groups:
        group["spec"]["queue"] = "q"
        await client.post(POD_GROUPS.namespace_path(namespace), group)
    await create(client, *(gang_pod(namespace, name, name.partition("-")[0]) for name in small + large))
    async with scheduling(through, client, namespace, "whole-1", "whole-2") as at_work:
        await at_work.observe(*small, *large)
        await at_work.step(1_000.0)
        nodes = [await at_work.bound(name) for name in small]
        await at_work.settled()
        await at_work.step(1_001.0)
        await at_work.settled()
        assert set(nodes) <= {"whole-1", "whole-2"}
        assert proxy.count("POST", BINDING) == len(small)
        assert {(await at_work.pod(name))["spec"].get("nodeName") for name in large} == {None}
        waiting = [condition for name in large for condition in (await at_work.pod(name))["status"]["conditions"]]
        assert [(c["type"], c["status"]) for c in waiting] == [("PodScheduled", "False")] * len(large)
        group = await client.get(POD_GROUPS.path(f"{namespace}/small"))
        assert group["status"]["phase"] == "Running"
    await client.delete(QUEUES.path("q"))


async def test_a_bound_pod_and_its_event(client: Client, namespace: str) -> None:
    await create(client, pod(namespace, "a"))
    async with scheduling(client, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("a")
        assert at_work.cluster.bind(at_work.bind_of("a", "n1")) is None
        assert await at_work.bound("a") == "n1"
        await at_work.settled()
        reports = await at_work.events("Scheduled")
    assert [(e["message"], e["type"], e["involvedObject"]["name"]) for e in reports] == [
        (f"Successfully assigned {namespace}/a to n1", "Normal", "a")
    ]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(answer(409, "Conflict"), id="409"),
        pytest.param(answer(404, "NotFound"), id="404"),
        pytest.param(answer(500, "InternalError"), id="500"),
        pytest.param(answer(403, "Forbidden"), id="403"),
        pytest.param(lose_request(), id="never arrived"),
    ],
)
async def test_what_was_not_bound_is_given_back(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, fault: Fault
) -> None:
    await create(client, pod(namespace, "a"))
    proxy.on("POST", BINDING, fault)
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("a")
        bind = at_work.bind_of("a", "n1")
        assert at_work.cluster.bind(bind) is None
        await at_work.given_back("a")
        assert at_work.undone == [Undone(bind.pod, bind.uid)]
        assert proxy.count("POST", BINDING) == 1, "not tried again behind the cycle's back"
        assert proxy.count("GET", "/pods/a$") == 1, "read before anything is decided"
        (condition,) = (await at_work.pod("a"))["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "SchedulerError",
        )
        assert condition["message"].startswith("failed to bind to node n1: POST ")

        def next_cycle_binds() -> bool:
            at_work.drain()
            return at_work.cluster.bind(bind) is None

        await until(next_cycle_binds, what="a later cycle may try again")
        assert await at_work.bound("a") == "n1"


async def test_why_a_bind_was_refused_is_what_its_pod_says(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None
) -> None:
    """The next cycle, in which the pod is held back, knows only that its gang is not ready."""
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": f"{namespace}-q"}}
    await client.post(QUEUES.list_path, queue)
    group = pod_group(namespace, "pair", 2)
    group["spec"]["queue"] = f"{namespace}-q"
    await client.post(POD_GROUPS.namespace_path(namespace), group)
    await create(client, *(gang_pod(namespace, name, "pair") for name in ("pair-0", "pair-1")))
    proxy.on("POST", "/pair-1/binding$", answer(403, "Forbidden", "denied by the policy of this cluster"), times=10**6)
    failed: list[str] = []
    timers = Timers(aged=lambda stage, bind, seconds: failed.append(bind.pod) if stage == "Failed" else None)
    async with scheduling(through, client, namespace, "n1", timers=timers) as at_work:
        await at_work.observe("pair-0", "pair-1")
        for cycle in range(3):
            await at_work.step(1_000.0 + cycle)
            await at_work.settled()
        (condition,) = (await at_work.pod("pair-1"))["status"]["conditions"]
        assert condition["reason"] == "SchedulerError"
        assert "denied by the policy of this cluster" in condition["message"]
        assert set(failed) == {f"{namespace}/pair-1"}
        reports = await at_work.events("FailedScheduling")
        assert all("denied by the policy" in event["message"] for event in reports)
    await client.delete(QUEUES.path(f"{namespace}-q"))


@pytest.mark.parametrize("fault", [pytest.param(lose_answer(), id="lost"), pytest.param(hang(600, True), id="late")])
async def test_a_binding_without_an_answer_is_looked_up(
    server: ApiServer, client: Client, proxy: FaultProxy, namespace: str, fault: Fault
) -> None:
    """The bind was applied and the answer was lost: the pod decides, nothing is written twice or given back."""
    await create(client, pod(namespace, "a"))
    proxy.on("POST", BINDING, fault)
    hasty = Client(bearer(proxy.url, server.token()), caps=Caps(request_s=3.0))
    async with hasty, by_hand(hasty, client, namespace, "a") as at_work:  # no watch: only the lookup can find out
        assert at_work.cluster.bind(at_work.bind_of("a", "n1")) is None
        assert await at_work.bound("a") == "n1"
        await at_work.settled()
        assert at_work.drain()
        assert not at_work.undone
        assert len(await at_work.events("Scheduled")) == 1
    assert proxy.count("POST", BINDING) == 1


async def test_too_many_requests_are_sent_again_when_the_server_says_so(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    rule = proxy.on("POST", BINDING, answer(429, "TooManyRequests", Retry_After="1"), times=2)
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        assert await at_work.bound("a") == "n1"
        at_work.drain()
    assert rule.hits == 2
    assert not at_work.undone
    assert proxy.count("GET", "/pods/a$") == 0


async def test_a_pod_that_another_scheduler_was_faster_with(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    async with by_hand(through, client, namespace, "a") as at_work:
        other = {
            "metadata": {"name": "a", "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "elsewhere"},
        }
        await client.post(PODS.path(f"{namespace}/a", "binding"), other)
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        assert await at_work.bound("a") == "elsewhere"
        at_work.drain()
        assert not at_work.undone
        assert len(at_work.cluster.in_flight) == 0


@pytest.mark.parametrize("again", [pytest.param(False, id="gone"), pytest.param(True, id="another of its name")])
async def test_a_pod_that_is_gone_is_not_bound(client: Client, namespace: str, again: bool) -> None:
    await create(client, pod(namespace, "a"))
    async with by_hand(client, client, namespace, "a") as at_work:
        await client.delete(PODS.path(f"{namespace}/a"))
        if again:
            await create(client, pod(namespace, "a"))
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        await until(lambda: f"{namespace}/a" not in at_work.cluster.cache.pods)
        assert Gone(Pod, f"{namespace}/a") in at_work.drain()
        assert not at_work.undone
        assert len(at_work.cluster.in_flight) == 0
        if again:
            assert "nodeName" not in (await at_work.pod("a"))["spec"]


_LABELLED = {"metadata": {"labels": {"changed": "meanwhile"}}}
_LARGER = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}


@pytest.mark.parametrize(
    ("change", "part"),
    [pytest.param(_LABELLED, "", id="labelled"), pytest.param(_LARGER, "resize", id="resized")],
)
async def test_a_pod_that_changes_while_it_is_bound_is_bound(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None, change: dict[str, Any], part: str
) -> None:
    """It changes after the decision and before the binding: the store has what it is by then, on the node, once."""
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "q3"}}
    group = pod_group(namespace, "gang", 1)
    group["spec"]["queue"] = "q3"
    await client.post(QUEUES.list_path, queue)
    await client.post(POD_GROUPS.namespace_path(namespace), group)
    await create(client, gang_pod(namespace, "a", "gang"))
    path = PODS.path(f"{namespace}/a", part)
    proxy.on("POST", BINDING, meanwhile(lambda: client.patch(path, change, content_type=STRATEGIC_PATCH)))
    async with scheduling(through, client, namespace, where := f"{namespace}-n") as at_work:
        await at_work.observe("a")
        await at_work.step(1_000.0)
        assert await at_work.bound("a") == where
        await at_work.settled()
        await at_work.step(1_001.0)
        assert at_work.loop is not None
        assert at_work.loop.decisions == []
        found = at_work.cluster.cache.pods[f"{namespace}/a"]
        cpu = 3000 if part else 1000
        assert (found.labels.get("changed", ""), found.spec.request.milli_cpu) == ("" if part else "meanwhile", cpu)
        nodes = at_work.loop.store.snapshot().tables.nodes
        assert nodes.books[nodes.facts.row_of[where], USED, CPU] == cpu
    assert proxy.count("POST", BINDING) == 1
    await client.delete(QUEUES.path("q3"))


async def test_a_pod_that_is_deleted_while_it_is_bound_is_let_go(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    proxy.on("POST", BINDING, meanwhile(lambda: client.delete(PODS.path(f"{namespace}/a"))))
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        await until(lambda: f"{namespace}/a" not in at_work.cluster.cache.pods)
        await at_work.settled()
        assert Gone(Pod, f"{namespace}/a") in at_work.drain()
        assert not at_work.undone
        assert await at_work.events("Scheduled") == []
    assert proxy.count("POST", BINDING) == 1


async def test_what_no_watch_confirms_is_looked_up(client: Client, namespace: str) -> None:
    """The watch says nothing: room is assumed for a bounded time only, then the API server's word counts."""
    await create(client, pod(namespace, "a"))
    async with by_hand(client, client, namespace, "a", writes=Writing(Limits(confirm_s=0.2))) as at_work:
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        assert await at_work.bound("a") == "n1"
        pods = [event.obj for event in at_work.drain() if isinstance(event, Seen) and isinstance(event.obj, Pod)]
        assert [pod.node_name for pod in pods] == ["", "n1"]
        assert len(at_work.cluster.in_flight) == 0


async def test_an_assumption_ends_when_the_pod_is_given_back(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None
) -> None:
    """In the loop: the task is Pending again in the snapshot after the failure, and is bound by a later cycle."""
    await client.post(QUEUES.list_path, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "q2"}})
    group = pod_group(namespace, "gang", 2)
    group["spec"]["queue"] = "q2"
    await client.post(POD_GROUPS.namespace_path(namespace), group)
    await create(client, gang_pod(namespace, "a", "gang"), gang_pod(namespace, "b", "gang"))
    proxy.on("POST", "/pods/b/binding$", answer(500, "InternalError"))
    async with scheduling(through, client, namespace, "again-1") as at_work:
        await at_work.observe("a", "b")
        await at_work.step(1_000.0)
        assert at_work.loop is not None
        assert {d.pod for d in at_work.loop.decisions} == {f"{namespace}/a", f"{namespace}/b"}
        await at_work.settled()
        later = 1_001.0
        while not at_work.cluster.cache.pods[f"{namespace}/b"].node_name:
            await at_work.step(later)
            await at_work.settled()
            later += 1
        assert {d.pod for d in at_work.loop.decisions} <= {f"{namespace}/b"}
        assert proxy.count("POST", "/pods/a/binding$") == 1
        assert proxy.count("POST", "/pods/b/binding$") == 2
    await client.delete(QUEUES.path("q2"))


async def bind_until_done(at_work: Scheduling, names: list[str], on: str) -> None:
    """What a loop does, without deciding anything: bind whatever waits and is not on its way."""
    pods, in_flight = at_work.cluster.cache.pods, at_work.cluster.in_flight

    def step() -> bool:
        at_work.drain()
        for name in names:
            key = f"{at_work.namespace}/{name}"
            if not pods[key].node_name and in_flight.of(key) is None:
                at_work.cluster.bind(at_work.bind_of(name, on, job=name))
        return all(pods[f"{at_work.namespace}/{name}"].node_name for name in names)

    await until(step, 120)
    await at_work.settled()


async def test_a_storm_of_faults_ends_with_every_pod_bound_once(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    names = [f"p{i:02}" for i in range(40)]
    await create(client, *(pod(namespace, name) for name in names))
    faults = [answer(409, "Conflict"), answer(500), lose_answer(), lose_request(), answer(429, Retry_After="0")]
    rules = [proxy.on("POST", rf"p\d{number}/binding$", fault, times=6) for number, fault in enumerate(faults)]
    rules += [proxy.on("GET", r"/pods/p\d+$", answer(503), times=5)]
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe(*names)
        await bind_until_done(at_work, names, "n1")
        reports = await at_work.events("Scheduled")
    assert all(rule.hits for rule in rules)
    assert sorted(event["involvedObject"]["name"] for event in reports) == names
    assert {event["count"] for event in reports} == {1}


async def test_two_that_bind_the_same_pods(client: Client, namespace: str) -> None:
    """As when a leader that was cut off still has requests on their way: each pod is on one node, and both know."""
    names = [f"p{i:02}" for i in range(30)]
    await create(client, *(pod(namespace, name) for name in names))
    first = scheduling(client, client, namespace, "n1", follow=(PODS, NODES))
    second = scheduling(client, client, namespace, "n2", follow=(PODS, NODES))
    async with first as one, second as other:
        await one.observe(*names)
        await other.observe(*names)
        await until(lambda: {"n1", "n2"} <= one.cluster.cache.nodes.keys() & other.cluster.cache.nodes.keys())
        await asyncio.gather(bind_until_done(one, names, "n1"), bind_until_done(other, names[::-1], "n2"))
        reports = await one.events("Scheduled")
        where = {name: (await one.pod(name))["spec"]["nodeName"] for name in names}
    assert {e["involvedObject"]["name"]: e["message"].rpartition(" ")[2] for e in reports} == where
    assert len(reports) == len(names)


async def test_the_server_is_killed_while_pods_are_bound(assets_server: ApiServer) -> None:
    names = [f"p{i:02}" for i in range(60)]
    server = assets_server
    async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "it"}})
        await create(client, *(pod("it", name) for name in names))
        async with scheduling(client, client, "it", "n1", follow=(PODS, NODES)) as at_work:
            await at_work.observe(*names)
            for name in names:
                assert at_work.cluster.bind(at_work.bind_of(name, "n1", job=name)) is None
            await until(lambda: at_work.cluster.binds.left < len(names))
            server.stop_api(kill=True)
            await asyncio.to_thread(server.start_api)
            await bind_until_done(at_work, names, "n1")
            assert {(await at_work.pod(name))["spec"]["nodeName"] for name in names} == {"n1"}


# -- hooks -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Hook:
    """Writes down what it is asked to do."""

    name: str
    done: list[str]
    fails: bool = False
    annotations: dict[str, str] = field(default_factory=dict)

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        if self.fails:
            raise RuntimeError("no volume\nfor you")
        self.done.append(f"{self.name} prepare {bind.context.get(self.name, '')}".strip())
        return self.annotations

    def done(self, bind: Bind) -> None:
        """Nothing is kept until then."""

    async def undo(self, bind: Bind) -> None:
        self.done.append(f"{self.name} undo")


async def test_hooks_run_before_binding_with_what_plugins_handed_on(client: Client, namespace: str) -> None:
    await create(client, pod(namespace, "a"))
    done: list[str] = []
    hooks = [Hook("volumes", done, annotations={"volumes": "bound"}), Hook("numa", done, annotations={"cpus": "0-3"})]
    async with scheduling(client, client, namespace, "n1", follow=(PODS, NODES), hooks=hooks) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1")._replace(context={"volumes": "pv-7"}))
        await at_work.bound("a")
        found = (await at_work.pod("a"))["metadata"]["annotations"]
    assert done == ["volumes prepare pv-7", "numa prepare"]
    assert found == {"volumes": "bound", "cpus": "0-3"}


async def test_cards_are_written_with_the_node_or_not_at_all(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    """What a pod got of shared devices is part of its binding: one that is refused leaves nothing on the pod."""
    await create(client, pod(namespace, "a"), pod(namespace, "b"))
    proxy.on("POST", "/pods/a/binding$", answer(403, "Forbidden"))
    given = {ASSIGNED_IDS_ANNOTATION: "GPU-0,NVIDIA,4000,0:", BIND_PHASE_ANNOTATION: ALLOCATING}
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("a", "b")
        for name in ("a", "b"):
            context = {DEVICES: DeviceGrant(namespace, name, tuple(given.items()))}
            at_work.cluster.bind(at_work.bind_of(name, "n1")._replace(context=context))
        await at_work.given_back("a")
        await at_work.bound("b")
        assert "annotations" not in (await at_work.pod("a"))["metadata"]
        assert (await at_work.pod("b"))["metadata"]["annotations"] == given
        assert dict(at_work.cluster.cache.pods[f"{namespace}/b"].annotations) == given, "heard of together"


async def test_a_hook_that_fails_undoes_those_before_it(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    done: list[str] = []
    hooks = [Hook("first", done), Hook("second", done), Hook("third", done, fails=True)]
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES), hooks=hooks) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        await at_work.given_back("a")
        (condition,) = (await at_work.pod("a"))["status"]["conditions"]
    assert done == ["first prepare", "second prepare", "second undo", "first undo"]
    assert proxy.count("POST", BINDING) == 0
    assert condition["message"] == (
        f"execute preBind for pod {namespace}/a failed: third: no volume�for you, resync the task"
    )


async def test_a_binding_that_is_refused_undoes_the_hooks(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    proxy.on("POST", BINDING, answer(403, "Forbidden"))
    done: list[str] = []
    hooks = [Hook("volumes", done)]
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES), hooks=hooks) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        await at_work.given_back("a")
    assert done == ["volumes prepare", "volumes undo"]


async def test_a_binding_that_was_applied_undoes_nothing(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    proxy.on("POST", BINDING, lose_answer())
    done: list[str] = []
    async with scheduling(
        through, client, namespace, "n1", follow=(PODS, NODES), hooks=[Hook("volumes", done)]
    ) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        await at_work.bound("a")
        await at_work.settled()
        await asyncio.wait_for(at_work.cluster.flush(60), 61)
    assert done == ["volumes prepare"]


# -- stopping ----------------------------------------------------------------------------------------------------------


async def test_stopping_finishes_what_was_taken_and_takes_no_more(client: Client, namespace: str) -> None:
    names = [f"p{i}" for i in range(30)]
    await create(client, *(pod(namespace, name) for name in [*names, "late"]))
    async with scheduling(client, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe(*names, "late")
        assert [at_work.cluster.bind(at_work.bind_of(name, "n1")) for name in names] == [None] * 30
        assert await at_work.cluster.flush(60) == 0
        refusal = at_work.cluster.bind(at_work.bind_of("late", "n1"))
        assert refusal is not None
        assert refusal.reason == "the scheduler is stopping"
        assert {(await at_work.pod(name))["spec"].get("nodeName") for name in names} == {"n1"}
        assert len(await at_work.events("Scheduled")) == 30


async def test_stopping_ends_in_time_without_an_answer(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    proxy.on("POST", BINDING, hang(600))
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(at_work.bind_of("a", "n1"))
        await until(lambda: proxy.count("POST", BINDING) == 1)
        assert await at_work.cluster.flush(0.1) == 1
