"""A whole scheduler in this process, on the embedded API server: cycles that fail, pages, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from msgspec.structs import replace

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.server import serving
from pumice.apiserver.cluster import Cluster
from pumice.cycle import run_cycle
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.registry import Registry, action_spec
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import EVENTS, LEASES, NATIVE_POD_GROUPS, NODES, POD_GROUPS, PODS, QUEUES
from pumice.kube.informers.watch_failures import Cause
from pumice.kube.scheduler import logs
from pumice.kube.scheduler.dump import SNAPSHOT_NAME
from pumice.kube.scheduler.http import serving as pages
from pumice.kube.scheduler.lease import Election
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import ConfFile
from pumice.kube.scheduler.settings import Settings
from pumice.model.pod import QUEUE_GATE
from pumice.model.workloads.native_group import INITIALLY_SCHEDULED
from pumice.runtime.files.snapshot_file import read_cycle
from pumice.runtime.loop import ListPlanner
from pumice.runtime.serving.listening import Place
from pumice.runtime.telemetry.metrics import Metrics
from pumice.volcano.table import volcano_registry
from tests.unit.apiserver.worlds import cluster, create, group, node, pod, queue

CONF = """
actions: "stumble, enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}]
"""
WITH_PLUGIN = CONF.replace("stumble, ", "").replace("{name: gang}", "{name: gang}, {name: stumbles}")
PATIENCE_S = 60.0
REACHED = ("Assumed", "Bound")
UNREAD = ("pumice_objects_not_read_total", "pumice_objects_unread")


class Fault:
    """What the first action of these tests does."""

    def __init__(self) -> None:
        self.opened = 0
        self.do: Callable[[], None] = lambda: None


@pytest.fixture
def fault() -> Fault:
    return Fault()


def conf_file(fault: Fault, path: Path | None = None) -> ConfFile:
    def stumble(ssn: Session) -> None:
        fault.opened += 1
        fault.do()

    volcano = volcano_registry().dialects["volcano"]
    actions = {**volcano.actions, "stumble": action_spec("stumble", stumble)}
    return ConfFile(path, Registry({"volcano": replace(volcano, actions=actions)}), CONF)


class At:
    """A scheduler at work. ``world`` is what the server has, ``url`` is of its pages."""

    def __init__(self, live: Live, client: Client, world: Cluster, url: str) -> None:
        self.live, self.client, self.world, self.url = live, client, world, url
        self.task = asyncio.create_task(live.run())

    async def gang(self, name: str, size: int, **more: Any) -> None:
        """``more`` of the PodGroup's spec."""
        spec = {"minMember": size, "queue": "q", **more}
        await self.client.post(POD_GROUPS.namespace_path("default"), group(name, **spec))
        for i in range(size):
            await self.client.post(PODS.namespace_path("default"), self.waiting(f"{name}-{i}", name))

    @staticmethod
    def waiting(name: str, gang: str) -> dict[str, Any]:
        annotations = {"scheduling.k8s.io/group-name": gang}
        containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
        return pod(name, annotations=annotations, schedulerName="volcano", containers=containers)

    @property
    def pods_known(self) -> int:
        """How many pods the store has. Nothing else of it may be read while a cycle may run."""
        store = self.live.loop.store
        return len({*store._tasks.row_of, *store._came})

    async def reports(self, reason: str, name: str) -> list[str]:
        """The messages of events with this reason about an object of this name."""
        found = (await self.client.get(EVENTS.namespace_path("default")))["items"]
        return [e["message"] for e in found if (e["reason"], e["involvedObject"]["name"]) == (reason, name)]

    async def bound(self, name: str) -> None:
        async def on_node() -> bool:
            return bool((await self.client.get(PODS.path(f"default/{name}")))["spec"].get("nodeName"))

        await until(on_node)

    async def page(self, path: str) -> str:
        async with Client(Access(self.url)) as asking:
            return (await asking.request("GET", path)).decode()


async def until(check: Callable[[], Any]) -> None:
    """Wait for a condition, which may be asynchronous."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = check()
        if await found if asyncio.iscoroutine(found) else found:
            return
        assert time.monotonic() < deadline
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)


@asynccontextmanager
async def scheduling(
    fault: Fault, election: bool = False, holder: str = "", conf: ConfFile | None = None, **settings: Any
) -> AsyncIterator[At]:
    world = cluster()
    for obj in (node("n0"), node("n1"), queue("q")):
        create(world, obj)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(Api(world), Place()))
        client = await stack.enter_async_context(Client(Access(url)))
        if holder:
            spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
            await client.post(LEASES.namespace_path("default"), {"metadata": {"name": "it"}, "spec": spec})
        own = Election(client, "default", "it", "me", 60.0, 40.0, 0.05) if election else None
        settings = {"period_s": 0.05, "conf_s": 0.02, **settings}
        live = Live(client, conf or conf_file(fault), Settings(**settings), Metrics(), election=own)
        (shown,) = await stack.enter_async_context(pages(live, [Place()]))
        at = At(live, client, world, shown)
        try:
            yield at
        finally:
            live.stop()
            with suppress(Exception):
                await asyncio.wait_for(at.task, PATIENCE_S)


async def test_a_gang_is_bound_and_the_scheduler_ends_on_a_signal(fault: Fault) -> None:
    async with scheduling(fault, election=True) as at:
        await at.gang("g", 2)
        await at.bound("g-0")
        await at.bound("g-1")
        at.live.stop()
        await asyncio.wait_for(at.task, PATIENCE_S)
        lease = await at.client.get(LEASES.path("default/it"))
        assert lease["spec"]["holderIdentity"] == ""


async def test_a_gang_of_kubernetes_own_is_bound_whole_and_its_group_says_so(fault: Fault) -> None:
    kind = next(each for each in NATIVE_POD_GROUPS.versions if each.version == "v1beta1")
    path = kind.path("default/team")
    async with scheduling(fault) as at:

        async def condition() -> tuple[str, str]:
            found = (await at.client.get(path)).get("status", {}).get("conditions", [])
            return next(((c["status"], c["reason"]) for c in found if c["type"] == INITIALLY_SCHEDULED), ("", ""))

        async def waits() -> bool:
            return await condition() == ("False", "Unschedulable")

        async def scheduled() -> bool:
            return await condition() == ("True", "Scheduled")

        metadata = {"name": "team", "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        await at.client.post(kind.namespace_path("default"), {"metadata": metadata, "spec": spec})
        for i in range(2):
            waiting = at.waiting(f"p-{i}", "")
            waiting["metadata"].pop("annotations")
            waiting["spec"]["schedulingGroup"] = {"podGroupName": "team"}
            await at.client.post(PODS.namespace_path("default"), waiting)
            if i == 0:
                await until(waits)
        await at.bound("p-0")
        await at.bound("p-1")
        await until(scheduled)


async def test_a_pod_whose_group_in_its_spec_does_not_exist_says_so_at_once(fault: Fault) -> None:
    async with scheduling(fault) as at:
        waiting = at.waiting("lost", "")
        waiting["metadata"].pop("annotations")
        waiting["spec"]["schedulingGroup"] = {"podGroupName": "nowhere"}
        await at.client.post(PODS.namespace_path("default"), waiting)
        await until(lambda: at.reports("FailedScheduling", "lost"))
        (message,) = await at.reports("FailedScheduling", "lost")
        assert "PodGroup default/nowhere, which spec.schedulingGroup names, does not exist" in message
        status = (await at.client.get(PODS.path("default/lost")))["status"]
        (condition,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")


async def test_a_gang_does_not_wait_for_the_period(fault: Fault) -> None:
    """The first of its objects wakes a cycle, which is too early for the others: they wake one as well."""
    async with scheduling(fault, period_s=3600.0) as at:
        await until(lambda: at.live.leads and fault.opened)
        await at.gang("g", 3)
        for i in range(3):
            await at.bound(f"g-{i}")


async def test_volcanos_schedule_is_woken_by_nothing(fault: Fault) -> None:
    async with scheduling(fault, period_s=3600.0, on_change=False) as at:
        await until(lambda: at.live.leads and fault.opened)
        opened = fault.opened
        await at.gang("g", 3)
        await until(lambda: len(at.live.cluster.cache.pods) == 3 and at.live._schedule.changed)
        assert at.live._schedule.due() > time.monotonic() + 1800
        assert fault.opened == opened


async def test_the_gate_of_a_queue_is_taken_off_and_the_pod_is_bound(fault: Fault) -> None:
    """An API server binds no pod that is gated: the gate is gone before."""
    async with scheduling(fault) as at:
        waits = at.waiting("g-0", "g")
        waits["metadata"]["annotations"][QUEUE_GATE] = "true"
        waits["spec"]["schedulingGates"] = [{"name": QUEUE_GATE}]
        await at.client.post(POD_GROUPS.namespace_path("default"), group("g", minMember=1, queue="q"))
        await at.client.post(PODS.namespace_path("default"), waits)
        await at.bound("g-0")


async def test_how_long_pods_waited_is_measured(fault: Fault) -> None:
    async with scheduling(fault) as at:
        await at.gang("g", 2)
        await at.bound("g-1")

        async def reports() -> bool:
            page = await at.page("/metrics")
            counts = (f'volcano_task_scheduling_latency_milliseconds_count{{stage="{s}"}} 2.0' for s in REACHED)
            return all(count in page for count in counts)

        await until(reports)


async def test_an_object_that_cannot_be_read_costs_only_itself(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    async with scheduling(fault) as at:
        await until(lambda: at.live.leads)
        assert "pumice_objects_not_read" not in await at.page("/metrics")
        newer = {**node("newer"), "status": {"capacity": {"cpu": {"whole": 4}}}}  # as no server of today would take it
        newer["metadata"] = {"name": "newer", "uid": "newer"}
        at.world.store.put("nodes", "newer", newer)
        await at.gang("g", 2)
        await at.bound("g-1")

        async def counted() -> bool:
            page = await at.page("/metrics")
            return all(f'{name}{{kind="nodes"}} ' in page for name in UNREAD)

        await until(counted)
        await until(lambda: at.reports("Unreadable", "newer"))
    reports = [record.getMessage() for record in caplog.records if "newer" in record.getMessage()]
    assert reports
    assert all(line.startswith("nodes: unreadable, other objects are not affected: Node newer: ") for line in reports)


async def test_a_pod_that_waits_for_a_missing_queue_is_reported(fault: Fault) -> None:
    async with scheduling(fault) as at:
        await at.gang("g", 1, queue="nowhere")
        await until(lambda: at.reports("QueueNotFound", "g"))
        (message,) = await at.reports("QueueNotFound", "g")
        assert "queue 'nowhere' does not exist" in message


async def test_what_came_of_requests_is_counted(fault: Fault) -> None:
    async with scheduling(fault) as at:
        await at.gang("g", 1)
        await at.bound("g-0")
        with pytest.raises(ApiError):
            await at.client.post(PODS.namespace_path("default"), at.waiting("g-0", "g"))
        page = await at.page("/metrics")
        assert 'pumice_api_requests_total{method="POST",code="409"} 1.0' in page
        assert 'pumice_api_requests_total{method="WATCH",code="200"} ' in page
        assert "pumice_events_lost_total 0.0" in page
        assert 'volcano_schedule_attempts_total{result="scheduled"} 1.0' in page


async def test_names_make_no_lines_of_their_own(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    """In whatever a user may write freely, on a server that checks nothing: queues, classes, groups, resources."""
    evil = 'x"} 1\n2026-01-31T12:00:00Z I run: all is well\x1b[2J\nvolcano_forged 1\n'
    caplog.set_level(logs.V5, "pumice")
    async with scheduling(fault) as at:
        lost = group("lost", minMember=1, queue=evil, priorityClassName=evil)
        stray = pod("stray", annotations={"scheduling.k8s.io/group-name": evil}, schedulerName="volcano")
        resources = {"requests": {"cpu": "1", f"example.com/{evil}": "1"}}
        wild = pod("wild", schedulerName="volcano", containers=[{"name": "c", "resources": resources}])
        table = {"PodGroup": POD_GROUPS.full_name, "Pod": PODS.full_name, "Queue": QUEUES.full_name}
        for made in (lost, stray, wild, queue(evil)):
            name = made["metadata"]["name"]
            made["metadata"] |= {"uid": name} | ({} if made["kind"] == "Queue" else {"namespace": "default"})
            at.world.store.put(table[made["kind"]], f"default/{name}", made)
        await at.gang("g", 1)
        await at.bound("g-0")
        await until(lambda: at.pods_known == 3)
        opened = fault.opened
        await until(lambda: fault.opened > opened + 1)
        page = await at.page("/metrics")
    assert "forged" not in page, "no label takes such a name"
    lines = [logs.TextLines().format(record) for record in caplog.records]
    assert all(line.isprintable() for line in lines)
    of_each = ("The Queue <x", "Job <default/x", 'unreadable, other objects are not affected: Queue "x')
    for words in of_each:
        assert any(words in line and "all is well" in line for line in lines), (words, lines)


async def test_a_group_without_queue_is_in_the_default_one(fault: Fault) -> None:
    async with scheduling(fault, default_queue="q") as at:
        await at.gang("g", 2, queue="")
        await at.bound("g-1")


async def test_a_cycle_that_fails_does_not_end_the_process(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    async with scheduling(fault) as at:
        await at.gang("early", 2)
        await at.bound("early-1")

        def fail() -> None:
            raise RuntimeError("no\nmore")

        fault.do = fail
        await until(lambda: at.live.failed_cycles >= 2)
        await at.gang("late", 2)
        fault.do = lambda: None
        await at.bound("late-1")
        assert not at.task.done()
        assert "pumice_failed_cycles_total" in await at.page("/metrics")
    failures = [record for record in caplog.records if "failed" in record.getMessage() and record.name == "pumice.run"]
    assert sum(record.exc_info is not None for record in failures) == 1, "one traceback, then a line each"


async def test_a_plugin_that_fails_is_named_and_the_next_cycle_is_as_usual(
    fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no failed cycle; nothing is decided while the plugin cannot be opened."""

    @plugin("stumbles", keeps="python")
    class Stumbles:
        def __init__(self, ssn: Session) -> None:
            pass

        def on_session_open(self, ssn: Session) -> None:
            if not mended:
                raise RuntimeError("no\nmore")

    mended: list[bool] = []
    conf = ConfFile(None, volcano_registry().with_plugins("volcano", [Stumbles]), WITH_PLUGIN)
    async with scheduling(fault, conf=conf) as at:
        await at.gang("g", 2)
        await until(lambda: sum(at.live.loop.faults.counts.values()) >= 2)
        page = await at.page("/metrics")
        assert at.live.failed_cycles == 0 and not at.task.done()
        mended.append(True)
        await at.bound("g-1")
    (line,) = [line for line in page.splitlines() if line.startswith("pumice_plugin_faults_total")]
    assert f'plugin="stumbles",point="opening",hook="__init__",where="{__file__}:' in line
    reports = [record.getMessage() for record in caplog.records if record.name == "pumice.plugins"]
    assert len(reports) == 1 and "RuntimeError: no more; skipped: the cycle" in reports[0], reports


async def test_the_store_is_whole_again_after_a_failure(fault: Fault) -> None:
    """Events that a failing cycle has taken in are not lost."""
    async with scheduling(fault) as at:
        await at.gang("g", 2)
        await at.bound("g-1")
        broken = at.live.loop.store
        broken.apply_all = None  # type: ignore[assignment, method-assign]  # every event fails
        await at.gang("late", 2)
        await at.bound("late-1")
        assert at.live.loop.store is not broken


async def test_a_lease_without_namespace_is_an_error(fault: Fault) -> None:
    async with scheduling(fault, election=True, lease_namespace="nowhere") as at:
        with pytest.raises(KubeError, match="namespace nowhere"):
            await asyncio.wait_for(at.task, PATIENCE_S)
        assert fault.opened == 0


async def test_only_nodes_with_a_wanted_label_are_there(fault: Fault) -> None:
    async with scheduling(fault, node_labels=(("pool", "batch"), ("pool", "gpu"))) as at:
        await until(lambda: at.live.leads and fault.opened)
        await at.gang("g", 2)
        await until(lambda: at.pods_known == 2)
        opened = fault.opened
        await until(lambda: fault.opened > opened + 1)
        assert not at.live.cluster.cache.nodes
        for name, pool in (("n0", "gpu"), ("n1", "other")):
            await at.client.patch(NODES.path(name), {"metadata": {"labels": {"pool": pool}}})
        await at.bound("g-0")
        await at.bound("g-1")
        pods = (await at.client.get(PODS.namespace_path("default")))["items"]
        assert {each["spec"]["nodeName"] for each in pods} == {"n0"}
        await at.client.patch(NODES.path("n0"), {"metadata": {"labels": {"pool": "other"}}})
        await until(lambda: not at.live.cluster.cache.nodes)


async def test_who_does_not_lead_takes_in_what_happens(fault: Fault) -> None:
    async with scheduling(fault, election=True, holder="somebody") as at:
        await at.gang("g", 2)
        await until(lambda: at.pods_known == 2)
        assert fault.opened == 0
        assert not at.live.leads


async def test_nothing_is_decided_on_what_is_old(fault: Fault) -> None:
    async with scheduling(fault) as at:
        await until(lambda: at.live.leads and fault.opened)
        nodes = at.live.informers.reflectors[NODES]
        nodes._troubles.note(NODES, Cause.UNREACHABLE, "the API server does not answer")
        await at.gang("g", 2)
        await until(lambda: at.pods_known == 2)
        with pytest.raises(ApiError, match="503"):
            await at.page("/readyz")
        fault.do = lambda: pytest.fail("a cycle began")
        before = at.live.failed_cycles
        await until(lambda: not at.live._news.is_set())
        assert at.live.failed_cycles == before
        fault.do = lambda: None
        nodes._troubles.over(NODES)
        await at.bound("g-1")


class Held:
    """A cycle that does not go on until it is let."""

    def __init__(self, fault: Fault) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        fault.do = self._hold

    def _hold(self) -> None:
        self.begun.set()
        assert self.go_on.wait(PATIENCE_S)


async def test_a_long_cycle_keeps_nobody_from_renewing(fault: Fault) -> None:
    async with scheduling(fault, election=True) as at:
        held = Held(fault)
        await until(held.begun.is_set)
        renewals: set[str] = set()

        async def renewed() -> bool:
            renewals.add((await at.client.get(LEASES.path("default/it")))["spec"]["renewTime"])
            return len(renewals) > 3

        await until(renewed)
        assert await at.page("/healthz") == "ok\n"
        held.go_on.set()
        assert at.live.leads


async def test_the_last_cycle_is_finished_and_written(fault: Fault) -> None:
    async with scheduling(fault, election=True, holder="somebody") as at:
        await at.gang("g", 2)
        await until(lambda: at.pods_known == 2)
        held = Held(fault)
        await at.client.patch(LEASES.path("default/it"), {"spec": {"holderIdentity": ""}})
        await until(held.begun.is_set)
        at.live.stop()
        held.go_on.set()
        await asyncio.wait_for(at.task, PATIENCE_S)
        assert fault.opened == 1
        for name in ("g-0", "g-1"):
            assert (await at.client.get(PODS.path(f"default/{name}")))["spec"].get("nodeName")


async def test_who_loses_the_lease_decides_nothing_until_it_is_given_back(fault: Fault) -> None:
    async with scheduling(fault, election=True) as at:
        await until(lambda: at.live.leads and fault.opened)
        known = at.live.informers
        await at.client.patch(LEASES.path("default/it"), {"spec": {"holderIdentity": "thief"}})
        await until(lambda: not at.live.leads)
        opened = fault.opened
        await at.gang("g", 2)
        await until(lambda: at.live.informers is not known and at.pods_known == 2)
        assert fault.opened == opened
        await at.client.patch(LEASES.path("default/it"), {"spec": {"holderIdentity": ""}})
        await at.bound("g-1")
        assert not at.task.done()


async def test_a_term_begins_from_what_the_server_says_and_keeps_nothing(fault: Fault) -> None:
    async with scheduling(fault, election=True) as at:
        await at.gang("g", 2)
        await at.bound("g-1")
        lost, port = at.live.loop.store, ref(at.live.cluster)
        await at.client.patch(LEASES.path("default/it"), {"spec": {"holderIdentity": "thief"}})
        await until(lambda: not at.live.leads)
        await at.client.post(PODS.namespace_path("default"), at.waiting("late", "g"))
        await at.client.patch(LEASES.path("default/it"), {"spec": {"holderIdentity": ""}})
        await at.bound("late")
        assert at.live.loop.store is not lost
        await until(lambda: port() is None)


async def test_pages(fault: Fault) -> None:
    async with scheduling(fault, period_s=3600.0) as at:
        await until(lambda: at.live.leads and at.live.loop.cycles and not at.live._schedule.changed)
        assert await at.page("/healthz") == "ok\n"
        assert await at.page("/readyz") == "ok\n"
        assert await at.page("/livez") == await at.page("/healthz") == "ok\n"
        assert '"stumble"' in await at.page("/conf")
        metrics = await at.page("/metrics")
        assert f'pumice_conf_info{{hash="{at.live.conf.current.hash}"}} 1.0' in metrics
        assert "pumice_plugin_faults" not in metrics, "nobody has failed"
        at.live.cycle_began = time.monotonic() - 3600
        with pytest.raises(ApiError, match="a cycle has been running for"):
            await at.page("/healthz")


async def test_a_scheduler_whose_cycles_all_fail_is_not_well(fault: Fault) -> None:
    """As under a conf that breaks each of them: after a while it says so, and its supervisor restarts it."""

    def stumble() -> None:
        raise ValueError("a fault")

    async with scheduling(fault) as at:
        await until(lambda: at.live.leads)
        fault.do = stumble
        await at.gang("g", 1)
        await until(lambda: at.live.failed_cycles >= 2)
        assert await at.page("/healthz") == "ok\n"
        assert at.live.failing_since is not None
        at.live.failing_since -= 3600
        with pytest.raises(ApiError, match="every cycle has failed for"):
            await at.page("/healthz")
        fault.do = lambda: None
        await at.bound("g-0")
        # The bind is seen before the cycle that decided it has ended.
        await until(lambda: at.live.failing_since is None)
        assert await at.page("/healthz") == "ok\n"


async def test_a_dump_is_written_between_cycles(fault: Fault, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pumice")
    async with scheduling(fault) as at:
        await until(lambda: at.live.leads and fault.opened)
        at.live.dump(tmp_path)
        await until(lambda: any("dumped: " in record.getMessage() for record in caplog.records))
        (place,) = tmp_path.iterdir()
        assert "n0" in (place / "nodes.yaml").read_text()
        at.live.dump(place / "README")
        await until(lambda: any("no dump in" in record.getMessage() for record in caplog.records))


async def test_a_dump_has_what_was_heard_since_the_last_cycle(fault: Fault, tmp_path: Path) -> None:
    async with scheduling(fault, period_s=3600.0, on_change=False) as at:
        await until(lambda: at.live.loop.cycles)
        await at.gang("g", 2)
        await until(lambda: "default/g-1" in at.live.cluster.cache.pods)
        at.live.dump(tmp_path)
        await until(lambda: [*tmp_path.glob("*/README")])
        (place,) = tmp_path.iterdir()
        cycle = read_cycle(place / SNAPSHOT_NAME)
        planner = ListPlanner()
        run_cycle(cycle.snapshot, at.live.conf.current.policy, cycle.now, planner)
        assert sorted(each.pod for each in planner.taken) == ["default/g-0", "default/g-1"]
