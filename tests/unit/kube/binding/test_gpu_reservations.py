"""Devices that pods share: reserved once a group, written on the pods, given back; and reservations that vanish."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.api.errors import ApiError
from pumice.kube.binding.gpu_reservations import GpuReservations, NotReserved, ReservationSettings
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder
from pumice.kube.writers.writing import Limits
from pumice.model.bind_request import BindRequest
from pumice.model.decisions import GPU_GROUPS, Bind
from pumice.model.devices.gpu import GpuShare
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod, Toleration
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions
from pumice.testing.build import node, pod
from tests.unit.kube.silence import SILENT

HALF = GpuShare(fraction=0.5)
NAMESPACE, INDEX = "kai-resource-reservation", "run.ai/reserve_for_gpu_index"


class Server:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, Any]] = []
        self.patches: list[tuple[str, Any]] = []
        self.deletes: list[str] = []
        self.on_delete: Callable[[], None] = lambda: None
        self.there = False

    async def post(self, path: str, body: Any) -> bytes:
        self.posts.append((path, body))
        if self.there:
            raise ApiError(409, "AlreadyExists", "it exists", f"POST {path}")
        return b""

    async def patch(self, path: str, body: Any) -> bytes:
        self.patches.append((path, body))
        return b""

    async def request(self, method: str, path: str) -> bytes:
        containers = [{"name": name} for name in ("main", "side")]
        return json.dumps({"spec": {"initContainers": [{"name": "first"}], "containers": containers}}).encode()

    async def delete(self, path: str, *, uid: str = "") -> bytes:
        self.deletes.append(path)
        self.on_delete()
        return b""


class World:
    def __init__(self, settings: ReservationSettings | None = ReservationSettings("image", wait_s=30.0)) -> None:  # noqa: B008
        self.server, self.cache = Server(), InformerCache(lambda: None)
        recorder = EventRecorder(SILENT, "kai-scheduler")
        self.in_flight = InFlightDecisions(lambda: 0.0)
        self.held = GpuReservations(self.server, self.cache, self.in_flight, recorder, "kai-scheduler", settings)  # type: ignore[arg-type]

    def sees(self, *pods: Pod) -> None:
        self.cache.apply([Seen(each) for each in pods])
        for each in pods:
            self.held.observe(each)

    async def prepared(self, *binds: Bind) -> None:
        """Until they are; the index of the device is answered as soon as it is asked for."""
        tasks = [asyncio.create_task(self.held.prepare(each)) for each in binds]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            for _, body in [each for each in self.server.posts if NAMESPACE in each[0]]:
                self.sees(reservation(body["metadata"]["name"]))
        for task in tasks:
            task.result()


def sharer(name: str, **changes: Any) -> Pod:
    it = pod(name, scheduler_name="kai-scheduler")
    return replace(it, spec=replace(it.spec, gpu_share=HALF), **changes)


def reservation(name: str = "r", index: str = "3") -> Pod:
    annotations = {INDEX: index} if index else {}
    labels = {"runai-gpu-group": "g"}
    return replace(pod(name), namespace=NAMESPACE, labels=labels, annotations=annotations, phase="Running")


def bind_of(it: Pod, *groups: str) -> Bind:
    return Bind(it.key, it.uid, "n1", "ns/job", {GPU_GROUPS: groups or ("g",)})


async def test_a_group_has_one_reservation_and_its_pods_bear_its_name() -> None:
    world, a, b = World(), sharer("a"), sharer("b")
    world.sees(a, b)
    await world.prepared(bind_of(a), bind_of(b))
    (made,) = {body["metadata"]["name"] for _, body in world.server.posts}
    # The first 16 hexadecimal digits of sha256("n1/g"), as KAI 0.17 names it.
    assert made == "gpu-reservation-c2e21fc9961434cf"
    assert len(world.server.posts) == 1 and world.server.posts[0][1]["spec"]["nodeName"] == "n1"
    assert [body["metadata"]["labels"] for _, body in world.server.patches] == [{"runai-gpu-group": "g"}] * 2


async def test_a_reservation_that_exists_already_is_used() -> None:
    """Of an attempt before a restart, say, whose pod is not seen yet."""
    world, a = World(), sharer("a")
    world.sees(a)
    world.server.there = True
    await world.prepared(bind_of(a))
    assert len(world.server.posts) == 1 and not world.server.deletes


async def test_a_reservation_tolerates_what_the_pod_tolerates_that_needs_it() -> None:
    world, a = World(), sharer("a")
    tolerations = (Toleration("gpu", "Equal", "a100", "NoExecute"), Toleration("", "Exists"))
    a = replace(a, spec=replace(a.spec, tolerations=tolerations))
    world.sees(a)
    await world.prepared(bind_of(a))
    assert world.server.posts[0][1]["spec"]["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoExecute"},
        {"operator": "Exists"},
    ]


async def test_the_devices_go_where_admission_said() -> None:
    world, a = World(), sharer("a", annotations={"runai/shared-gpu-configmap": "m"})
    world.sees(a, reservation())
    world.cache.apply([Seen(node("n1", labels={"nvidia.com/gpu.memory": "16381"}))])
    await world.prepared(bind_of(a))
    data = {body["metadata"]["name"]: body["data"] for path, body in world.server.posts if "configmaps" in path}
    assert data == {
        "m-0": {
            "NVIDIA_VISIBLE_DEVICES": "3",
            "GPU_PORTION": "0.50",
            "RUNAI_NUM_OF_GPUS": "0.50",
            "RUNAI-VISIBLE-DEVICES": "3",
            "CUDA_DEVICE_MEMORY_LIMIT": "8190m",
        },
        "m-0-evar": {"NVIDIA_VISIBLE_DEVICES": "3"},
    }


async def test_a_share_by_memory_is_a_portion_of_the_nodes_devices() -> None:
    world, a = World(), sharer("a", annotations={"runai/shared-gpu-configmap": "m"})
    a = replace(a, spec=replace(a.spec, gpu_share=GpuShare(memory_mib=1000)))
    world.sees(a, reservation())
    world.cache.apply([Seen(node("n1", labels={"nvidia.com/gpu.memory": "16384"}))])
    await world.prepared(bind_of(a))
    (data,) = (body["data"] for _, body in world.server.posts if body["metadata"]["name"] == "m-0")
    # 1,000 of 16,300 MiB in hundredths, and that part of 16,384 MiB.
    assert (data["GPU_PORTION"], data["CUDA_DEVICE_MEMORY_LIMIT"]) == ("0.06", "983m"), (
        "of 16,300 MiB, and of the device"
    )


@pytest.mark.parametrize(("named", "place"), [("first", "i0"), ("main", "0"), ("side", "1")])
async def test_the_container_that_a_pod_names_has_the_share(named: str, place: str) -> None:
    world = World()
    a = sharer("a", annotations={"runai/shared-gpu-configmap": "m", "gpu-fraction-container-name": named})
    world.sees(a, reservation())
    await world.prepared(bind_of(a))
    assert {body["metadata"]["name"] for _, body in world.server.posts} == {f"m-{place}", f"m-{place}-evar"}


async def test_a_pod_that_names_a_container_which_it_does_not_have_is_not_bound() -> None:
    world = World()
    a = sharer("a", annotations={"runai/shared-gpu-configmap": "m", "gpu-fraction-container-name": "no"})
    world.sees(a, reservation())
    with pytest.raises(NotReserved, match="gpu-fraction-container-name: the pod has no container 'no'"):
        await world.held.prepare(bind_of(a))
    assert world.server.patches[-1][1]["metadata"]["labels"] == {"runai-gpu-group": None}


async def test_who_never_says_which_device_is_taken_away_and_the_pod_is_not_bound() -> None:
    world, a = World(ReservationSettings("image", wait_s=0.0)), sharer("a")
    world.sees(a)
    with pytest.raises(NotReserved, match="no word for 0 s"):
        await world.held.prepare(bind_of(a))
    assert len(world.server.deletes) == 1 and NAMESPACE in world.server.deletes[0]
    assert world.server.patches[-1][1]["metadata"]["labels"] == {"runai-gpu-group": None}


async def test_without_an_image_nobody_who_shares_is_bound() -> None:
    world, a = World(None), sharer("a")
    world.sees(a)
    with pytest.raises(NotReserved, match="--gpu-reservation-image"):
        await world.held.prepare(bind_of(a))
    assert not world.server.posts


async def test_a_reservation_that_nobody_shares_goes_and_one_that_is_needed_stays() -> None:
    world, a = World(), sharer("a", labels={"runai-gpu-group": "g"}, phase="Running", node_name="n1")
    world.sees(a, reservation())
    await world.held.release_unused()
    await world.held.release_unused()
    assert not world.server.deletes
    world.held.gone(a.key)
    await world.held.release_unused()
    assert not world.server.deletes
    await world.held.release_unused()
    assert world.server.deletes == [f"/api/v1/namespaces/{NAMESPACE}/pods/r"]


async def test_pods_whose_reservation_vanished_go_before_others_get_their_device() -> None:
    world = World()
    ours = sharer("a", labels={"runai-gpu-group": "g"}, phase="Running", node_name="n1")
    theirs = replace(ours, name="b", uid="b", scheduler_name="other")
    world.sees(ours, theirs, reservation())
    world.held.gone(f"{NAMESPACE}/r")
    await world.held.end_unreserved()
    assert not world.server.deletes
    await world.held.end_unreserved()
    assert world.server.deletes == ["/api/v1/namespaces/ns/pods/a"]


async def test_a_bind_that_fails_takes_the_name_off_the_pod() -> None:
    world, a = World(), sharer("a")
    world.sees(a, reservation())
    await world.held.prepare(bind_of(a))
    await world.held.undo(bind_of(a))
    assert world.server.patches[-1][1]["metadata"]["labels"] == {"runai-gpu-group": None}
    assert not world.held._preparing


async def test_a_reservation_stays_while_a_bind_to_its_group_waits_to_be_sent() -> None:
    world, a = World(), sharer("a")
    world.sees(a, reservation())
    entry = InFlightDecision(bind_of(a))
    world.in_flight.add(entry)
    for _ in range(3):
        await world.held.release_unused()
    assert not world.server.deletes
    world.in_flight.end(entry)
    for _ in range(2):
        await world.held.release_unused()
    assert len(world.server.deletes) == 1


async def test_a_reservation_stays_that_a_pod_came_to_while_another_one_was_deleted() -> None:
    world, late = World(), sharer("late", labels={"runai-gpu-group": "h"}, phase="Running", node_name="n1")
    other = replace(reservation("r2"), labels={"runai-gpu-group": "h"})
    world.sees(reservation(), other)
    await world.held.release_unused()
    world.server.on_delete = lambda: world.sees(late)
    await world.held.release_unused()
    assert world.server.deletes == [f"/api/v1/namespaces/{NAMESPACE}/pods/r"]


async def test_reservations_that_go_while_another_one_is_deleted_are_not_deleted() -> None:
    world = World()
    world.sees(reservation(), replace(reservation("r2"), labels={"runai-gpu-group": "h"}))
    await world.held.release_unused()
    world.server.on_delete = lambda: world.held.gone(f"{NAMESPACE}/r2")
    await world.held.release_unused()
    assert world.server.deletes == [f"/api/v1/namespaces/{NAMESPACE}/pods/r"]


async def test_pods_stay_whose_reservation_came_back_while_others_were_ended() -> None:
    world = World()
    pods = {
        group: sharer(name, labels={"runai-gpu-group": group}, phase="Running", node_name="n1")
        for name, group in (("a", "g"), ("b", "h"))
    }
    world.sees(*pods.values())
    await world.held.end_unreserved()
    world.server.on_delete = lambda: world.sees(replace(reservation("r2"), labels={"runai-gpu-group": "h"}))
    await world.held.end_unreserved()
    assert world.server.deletes == ["/api/v1/namespaces/ns/pods/a"]


@pytest.mark.parametrize(("phase", "stays"), [("", True), ("Pending", True), ("Succeeded", False), ("Failed", False)])
async def test_a_reservation_stays_while_a_live_bind_request_names_its_group(phase: str, stays: bool) -> None:
    world = World()
    world.sees(reservation())
    request = BindRequest("ns", "a", "a", "n1", gpu_groups=("g",), phase=phase)
    world.held.take(Seen(request))
    await world.held.release_unused()
    await world.held.release_unused()
    assert bool(world.server.deletes) is not stays
    world.held.take(Gone(BindRequest, request.key))
    await world.held.release_unused()
    await world.held.release_unused()
    assert world.server.deletes and not world.held._requested


def test_a_reservation_is_free_within_five_seconds() -> None:
    """One is deleted when it was found unused twice, and it takes no time to end."""
    assert 2 * Limits().release_s <= 5.0


async def test_a_reservation_pod_ends_at_once() -> None:
    world, a = World(), sharer("a")
    world.sees(a)
    await world.prepared(bind_of(a))
    assert world.server.posts[0][1]["spec"]["terminationGracePeriodSeconds"] == 0
