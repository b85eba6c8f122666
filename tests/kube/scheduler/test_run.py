"""``pumice run`` against a real API server: gangs, two schedulers, confs that change, kinds that come, bad ways in."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cycle import run_cycle
from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import LEASES, NODES, POD_GROUPS, PODS, QUEUES
from pumice.kube.scheduler.dump import SNAPSHOT_NAME
from pumice.kube.writers.hint_conditions import HINT
from pumice.model.decisions import Bind
from pumice.model.manifest import Decoder
from pumice.runtime.digest import Digest
from pumice.runtime.files.snapshot_file import read_cycle
from pumice.runtime.loop import ListPlanner, Loop
from pumice.runtime.policy.conf import policy_of
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.state.store import Store
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.kube.objects import CRDS, create, install_crds, node, remove_crd
from tests.kube.proxy import FaultProxy, hang, meanwhile
from tests.kube.running import Running, eventually, running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer
from tests.kube.waiting import until

CONF = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"""


@pytest.fixture(scope="module")
def server(own_server: ApiServer) -> ApiServer:
    return own_server


class World:
    """A namespace with what is scheduled in it, and nodes of its own."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def nodes(self, count: int, cpu: str = "4") -> None:
        await create(self.client, *(node(f"{self.namespace}-n{i}", cpu) for i in range(count)))

    async def gang(self, name: str, size: int, minimum: int | None = None) -> None:
        group = pod_group(self.namespace, name, minimum or size, phase="Pending")
        await self.client.post(POD_GROUPS.namespace_path(self.namespace), group)
        await create(self.client, *(gang_pod(self.namespace, f"{name}-{i}", name) for i in range(size)))

    async def pods(self) -> dict[str, str]:
        """Where each pod is, as the server has it."""
        found = await self.client.get(PODS.namespace_path(self.namespace))
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in found["items"]}

    async def bound(self, gang: str, size: int) -> dict[str, str]:
        """Wait until a gang has its nodes."""

        async def on() -> dict[str, str]:
            pods = await self.pods()
            found = {name: where for name, where in pods.items() if name.startswith(f"{gang}-") and where}
            return found if len(found) == size else {}

        return await eventually(on, f"{gang} is not bound")

    async def some_bound(self) -> bool:
        """Whether any pod but those of the gang ``early`` has a node."""
        return any(where for name, where in (await self.pods()).items() if not name.startswith("early"))

    async def condition(self, gang: str, kind: str = "Unschedulable") -> str:
        """Wait until a PodGroup says why it waits."""

        async def said() -> str:
            found = await self.client.get(POD_GROUPS.path(f"{self.namespace}/{gang}"))
            conditions = found.get("status", {}).get("conditions", ())
            return next((str(each["message"]) for each in conditions if each["type"] == kind), "")

        return await eventually(said, f"{gang} says nothing")


@pytest.fixture
async def world(client: Client, crds: None, namespace: str) -> AsyncIterator[World]:
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    with suppress(ApiError):  # it is there already
        await client.post(QUEUES.list_path, queue)
    made = World(client, namespace)
    yield made
    for pod in await made.pods():
        await client.delete(PODS.path(f"{namespace}/{pod}"))
    for obj in (await client.get(NODES.list_path))["items"]:
        await client.delete(NODES.path(obj["metadata"]["name"]))


@pytest.fixture
def flags(namespace: str) -> tuple[str, ...]:
    return (f"--leader-elect-resource-namespace={namespace}",)


async def leads(*processes: Running) -> Running:
    """Wait until one of them leads."""
    await until(lambda: any(each.said(" leads: ") for each in processes), what="\n".join(p.text for p in processes))
    return next(each for each in processes if each.said(" leads: "))


async def counts(it: Running, line: str) -> bool:
    """Whether this line is among its metrics."""
    return line in (await it.page("/metrics")).splitlines()


# -- the plain case


async def test_a_gang_is_bound_whole_or_not_at_all(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(2)
    await world.gang("whole", 5)
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        await world.bound("whole", 5)
        await world.gang("never", 4)
        assert "tasks in gang unschedulable: pod group is not ready" in await world.condition("never")
        hint = f"3 of 4 pods fit; the other one asks for 1 core, and {world.namespace}-n0 has 0 free"
        assert await world.condition("never", HINT) == hint
        assert not any(where for name, where in (await world.pods()).items() if name.startswith("never"))
        assert await it.page("/readyz") == "ok\n"
        assert "pumice_leader 1.0" in await it.page("/metrics")
        await eventually(lambda: counts(it, 'volcano_unschedule_task_count{job_id="never"} 4.0'))
        assert await it.ended(signal.SIGTERM) == 0, it.text
    lease = await world.client.get(LEASES.path(f"{world.namespace}/volcano"))
    assert lease["spec"]["holderIdentity"] == "", "it was given back"


async def test_what_is_dumped_can_be_replayed(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(1)
    await world.gang("never", 5)
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        await world.condition("never")
        it.process.send_signal(signal.SIGUSR2)
        said = await it.says("dumped: ")
    place = Path(said["message"].split()[-1])
    pods = [json.loads(line) for line in (place / "pods.yaml").read_text().splitlines() if line != "---"]
    assert {pod["metadata"]["name"] for pod in pods} == {f"never-{i}" for i in range(5)}


async def test_a_dump_decides_as_the_next_cycle_does(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Dumped in the middle of a period: what was heard since the last cycle is in it."""
    await world.nodes(4, cpu="8")
    await world.gang("early", 1)
    slow = "--schedule-period=10s", "--wake-on-change=false"
    with running(tmp_path, server.kubeconfig(), *flags, *slow) as it:
        early = await world.bound("early", 1)
        for number in range(4):
            await world.gang(f"g{number}", 4)

        async def dumped() -> Path | None:
            count = len(it.said("dumped: "))
            it.process.send_signal(signal.SIGUSR2)
            await until(lambda: len(it.said("dumped: ")) > count)
            place = Path(it.said("dumped: ")[-1]["message"].split()[-1])
            # Pods and their groups come by watches of their own, in any order.
            heard = {kind: (place / f"{kind}.yaml").read_text().count('"name":"g') for kind in ("pods", "podgroups")}
            return place if heard["pods"] >= 16 and heard["podgroups"] >= 4 else None

        place = await eventually(dumped)
        assert len(it.said("cycle ")) == 1, "no cycle has seen them"
        await until(lambda: len(it.said("cycle ")) == 2)
        first, second = it.said("cycle ")
    planner = ListPlanner()
    run_cycle(
        read_cycle(place / SNAPSHOT_NAME).snapshot, policy_of(DEFAULT_CONF, volcano_registry()), second["now"], planner
    )
    assert len(planner.taken) == second["to_bind"] == 16
    both = Digest()
    both.add(first["now"], [Bind(f"{world.namespace}/{name}", "", on, "") for name, on in early.items()])
    both.add(second["now"], planner.taken)
    assert both.hex == second["digest"]


async def test_the_first_cycle_is_the_simulators(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(4, cpu="8")
    for number in range(6):
        await world.gang(f"g{number}", 4)
    decoder, objects = Decoder(), []
    for kind in (NODES, QUEUES, POD_GROUPS, PODS):
        found = await world.client.get(kind.list_path)
        objects += [decoder.decode_as(kind.api_version, kind.kind, item) for item in found["items"]]
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        said = await it.says("cycle ")
    assert said["cycle"] == 1
    cluster = SimCluster(Engine(said["now"]))
    for obj in objects:
        cluster.put(obj)  # type: ignore[arg-type]  # none of these is a job
    loop = Loop(Store(), policy_of(DEFAULT_CONF, volcano_registry()), cluster)
    loop.step(said["now"])
    assert (len(loop.decisions), loop.digest.hex) == (said["to_bind"], said["digest"])
    assert said["to_bind"] == 24


# -- two of them


async def test_the_leader_is_killed_and_the_other_takes_over(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(10, cpu="16")
    config = server.kubeconfig()
    with (
        running(tmp_path, config, *flags, quick_lease=True) as a,
        running(tmp_path, config, *flags, quick_lease=True) as b,
    ):
        for each in (a, b):
            await each.says("synced: ")
        first = await leads(a, b)
        second = b if first is a else a
        await world.gang("early", 4)
        await world.bound("early", 4)
        making = [asyncio.create_task(world.gang(f"g{number}", 5)) for number in range(12)]
        await eventually(world.some_bound, "the first has bound nothing")
        assert await first.ended(signal.SIGKILL) < 0
        await asyncio.gather(*making)
        await leads(second)
        for number in range(12):
            await world.bound(f"g{number}", 5)
        assert second.said(" leads: ")
    used: dict[str, int] = defaultdict(int)
    for where in (await world.pods()).values():
        used[where] += 1
    assert sum(used.values()) == 64
    assert all(count <= 16 for count in used.values()), "no node holds more than it has"
    found = await world.client.get(f"/api/v1/namespaces/{world.namespace}/events")
    scheduled: dict[str, set[str]] = defaultdict(set)
    for event in found["items"]:
        if event["reason"] == "Scheduled" and event["involvedObject"]["kind"] == "Pod":
            scheduled[event["involvedObject"]["name"]].add(event["message"])
    assert all(len(messages) == 1 for messages in scheduled.values()), "no pod was bound twice"


async def test_who_waits_decides_nothing(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {"metadata": {"name": "volcano", "namespace": world.namespace}, "spec": spec}
    await world.client.post(LEASES.namespace_path(world.namespace), lease)
    await world.nodes(1)
    await world.gang("g", 1)
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        await it.says("synced: ")
        assert await it.page("/readyz") == "ok\n", "it could lead"
        assert "pumice_leader 0.0" in await it.page("/metrics")
        assert await world.pods() == {"g-0": ""}
        await world.client.patch(LEASES.path(f"{world.namespace}/volcano"), {"spec": {"holderIdentity": ""}})
        await world.bound("g", 1)


# -- what changes while it runs


async def test_the_api_server_is_killed_and_comes_back(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(8, cpu="16")
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        await leads(it)
        await asyncio.gather(*(world.gang(f"g{number}", 5) for number in range(12)))
        await eventually(world.some_bound)
        server.stop_api(kill=True)
        await it.says("the API server does not answer")
        await asyncio.to_thread(server.start_api)
        for number in range(12):
            await world.bound(f"g{number}", 5)
        await world.gang("late", 3)
        await world.bound("late", 3)
        assert len(it.said(" leads: ")) == 1


async def test_an_outage_longer_than_the_lease_is_outlived(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """It stops deciding, and leads again as soon as the server is back: the Lease, of ten minutes, is still its own."""
    await world.nodes(2)
    with running(tmp_path, server.kubeconfig(), *flags, "--leader-elect-renew-deadline=2s") as it:
        await leads(it)
        server.stop_api(kill=True)
        await it.says("has lost leadership: not renewed")
        await asyncio.to_thread(server.start_api)
        await world.gang("late", 3)
        await world.bound("late", 3)
        assert len(it.said(" leads: ")) == 2
        assert len(it.said("the API server does not answer")) == 1
        assert it.said("the API server responds again")


async def test_the_conf_is_taken_over_while_it_runs(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF.format(actions="enqueue"))
    await world.nodes(1)
    await world.gang("g", 2)
    with running(tmp_path, server.kubeconfig(), f"--scheduler-conf={conf}", *flags) as it:
        await leads(it)
        before = json.loads(await it.page("/conf"))
        assert [action["name"] for action in before["actions"]] == ["enqueue"]
        conf.write_text("actions: [")
        await it.says("conf not loaded, going on with")
        assert "pumice_conf_refused 1.0" in await it.page("/metrics")
        assert json.loads(await it.page("/conf")) == before
        assert not any((await world.pods()).values())
        conf.write_text(CONF.format(actions="enqueue, allocate"))
        await world.bound("g", 2)
        assert "pumice_conf_refused 0.0" in await it.page("/metrics")
        assert len(it.said("conf not loaded")) == 1


async def test_a_kind_that_is_installed_later_is_taken_up(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await remove_crd(world.client, POD_GROUPS.full_name)
    await world.nodes(1)
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        await it.says("gang scheduling is off until it appears")
        await leads(it)
        await install_crds(world.client)
        await world.gang("g", 2)
        await it.says(f"{POD_GROUPS.full_name} is installed now", seconds=120)
        await world.bound("g", 2)


# -- the end

#: The flush of decisions, and what else an end takes on a busy machine.
END_S = 20.0 + 25.0


async def test_a_leader_that_is_stopped_finishes_the_binds_in_flight(
    world: World, server: ApiServer, proxy: FaultProxy, flags: tuple[str, ...], tmp_path: Path
) -> None:
    is_stopping = asyncio.Event()
    proxy.on("POST", r"/binding$", meanwhile(is_stopping.wait), times=10**6)
    await world.nodes(2)
    await world.gang("g", 5)
    with running(tmp_path, server.kubeconfig(server=proxy.url), *flags) as it:
        await until(lambda: proxy.count("POST", r"/binding$"), what=it.text)
        assert not all((await world.pods()).values()), "binds are in flight"
        ended = asyncio.create_task(ended_in_time(it))
        await it.says("stopping")
        is_stopping.set()
        assert await ended == 0, it.text
    assert all((await world.pods()).values()), "the gang is whole"
    assert "abandoned" not in it.text


async def test_a_leader_that_is_stopped_ends_soon_although_binds_have_no_answer(
    world: World, server: ApiServer, proxy: FaultProxy, flags: tuple[str, ...], tmp_path: Path
) -> None:
    proxy.on("POST", r"/binding$", hang(600.0), times=10**6)
    await world.nodes(2)
    await world.gang("g", 5)
    with running(tmp_path, server.kubeconfig(server=proxy.url), *flags) as it:
        await until(lambda: proxy.count("POST", r"/binding$"), what=it.text)
        assert await ended_in_time(it) == 0, it.text
        assert "decisions were still in flight after 20 s and were abandoned" in it.text
    lease = await world.client.get(LEASES.path(f"{world.namespace}/volcano"))
    assert lease["spec"]["holderIdentity"] == "", "another may lead at once"


async def ended_in_time(it: Running) -> int:
    """Stop a process as Kubernetes stops a pod. Return its exit code."""
    async with asyncio.timeout(END_S):
        return await it.ended(signal.SIGTERM)


# -- rights


async def test_the_roles_that_are_shipped_are_enough(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(1)
    for obj in yaml.safe_load_all((CRDS.parent / "base" / "rbac.yaml").read_text()):
        await grant(world, obj, "scheduler")
    with running(tmp_path, server.kubeconfig("scheduler"), *flags, "--controllers=auto", "-v=4") as it:
        await world.gang("g", 2)
        await world.bound("g", 2)
        await world.gang("never", 9)
        assert "gang unschedulable" in await world.condition("never")
        assert await it.ended(signal.SIGTERM) == 0
        assert "orbidden" not in it.text, it.text
        assert "no right" not in it.text, it.text


async def grant(world: World, obj: dict[str, Any], user: str) -> None:
    """Make a role, or bind it to the user; what belongs to a namespace, in the test's."""
    kind = obj["kind"]
    if "subjects" in obj:
        obj["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    within = "" if kind.startswith("Cluster") else f"namespaces/{world.namespace}/"
    obj["metadata"].pop("namespace", None)
    await world.client.post(f"/apis/rbac.authorization.k8s.io/v1/{within}{kind.lower()}s", obj)


# -- bad ways in


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"token": "expired"}, "does not accept these credentials", id="expired"),
        pytest.param({"server": "https://127.0.0.1:1"}, "does not answer", id="unreachable"),
        pytest.param({"server": ""}, "names no server", id="no server"),
    ],
)
async def test_a_bad_way_in_is_one_line(server: ApiServer, tmp_path: Path, changes: dict[str, str], said: str) -> None:
    config = server.kubeconfig("nobody", **changes)
    with running(tmp_path, config) as it:
        assert await it.ended() == 2
        lines = [line for line in it.text.splitlines() if not line.startswith("{")]
        assert len(lines) == 1, it.text
        assert lines[0].startswith("error: ")
        assert said in lines[0]


async def test_no_right_to_read_is_said_and_waited_for(server: ApiServer, tmp_path: Path, namespace: str) -> None:
    with running(tmp_path, server.kubeconfig("nobody"), f"--leader-elect-resource-namespace={namespace}") as it:
        said = await it.says("no right to list and watch pods")
        assert said["level"] == "error"
        assert not it.said("synced: ")
        assert await it.ended(signal.SIGINT) == 0, it.text


async def test_a_namespace_that_is_not_there_is_one_line(server: ApiServer, client: Client, tmp_path: Path) -> None:
    with running(tmp_path, server.kubeconfig(), "--lock-object-namespace=nowhere") as it:
        assert await it.ended() == 2
        assert "error: namespace nowhere, where the Lease would be, does not exist" in it.text
