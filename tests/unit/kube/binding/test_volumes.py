"""What is asked of a claim's volume before its pod is bound, and that nothing of it is left where the pod was not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.binding.volumes import VolumeBinding, VolumeProblem
from pumice.model.decisions import VOLUMES, Bind, VolumeGrant
from pumice.model.manifest.volumes import SELECTED_NODE

CLAIM, VOLUME = "/api/v1/namespaces/ns/persistentvolumeclaims/{}", "/api/v1/persistentvolumes/{}"


class Server:
    """Objects by path. ``then`` is what a controller of volumes does after a write."""

    def __init__(self, *, volume: dict[str, Any] | None = None, **claims: dict[str, Any]) -> None:
        self.objects = {CLAIM.format(name): found for name, found in claims.items()}
        if volume is not None:
            self.objects[VOLUME.format("v")] = volume
        self.then: Callable[[Server], None] = lambda server: None

    async def get(self, path: str) -> Any:
        if path not in self.objects:
            raise ApiError(404, "NotFound", "", path)
        return copy.deepcopy(self.objects[path])

    async def put(self, path: str, body: Any) -> Any:
        self.objects[path] = copy.deepcopy(body)
        self.then(self)
        return body

    async def patch(self, path: str, body: Any) -> bytes:
        found = self.objects[path]["metadata"].setdefault("annotations", {})
        for name, value in body["metadata"]["annotations"].items():
            found[name] = value
            if value is None:
                del found[name]
        self.then(self)
        return b"{}"

    def binding(self) -> VolumeBinding:
        return VolumeBinding(cast(Client, self), (0.0, 0.0))


def claim(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": "c", "uid": "u", "annotations": dict(annotations)}, "spec": {}, "status": {}}


def volume(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "v"}, "spec": spec}


def is_bound(server: Server) -> None:
    found = server.objects[CLAIM.format("c")]
    found["spec"]["volumeName"], found["status"]["phase"] = "v", "Bound"


def is_gone(server: Server) -> None:
    server.objects.pop(CLAIM.format("c"), None)


def bind(of: str = "", uid: str = "u") -> Bind:
    return Bind("ns/a", "u-a", "n1", "ns/g", {VOLUMES: (VolumeGrant("ns/c", uid, of, "n1"),)})


async def test_a_volume_is_kept_for_its_claim_until_it_is_bound() -> None:
    server = Server(c=claim(), volume=volume())
    server.then = is_bound
    await server.binding().prepare(bind("v"))
    reference = server.objects[VOLUME.format("v")]["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"], reference["uid"]) == ("ns", "c", "u")


async def test_a_node_is_named_for_the_volume_that_is_to_be_made() -> None:
    server = Server(c=claim())
    server.then = is_bound
    await server.binding().prepare(bind())
    assert server.objects[CLAIM.format("c")]["metadata"]["annotations"] == {SELECTED_NODE: "n1"}


@pytest.mark.parametrize("of", ["v", ""])
async def test_what_is_not_bound_in_time_is_given_back(of: str) -> None:
    server = Server(c=claim(), volume=volume())
    with pytest.raises(VolumeProblem, match="is not bound yet"):
        await server.binding().prepare(bind(of))
    assert server.objects == {CLAIM.format("c"): claim(), VOLUME.format("v"): server.objects[VOLUME.format("v")]}
    assert "claimRef" not in server.objects[VOLUME.format("v")]["spec"]


async def test_a_volume_that_is_being_made_is_made_for_the_next_try() -> None:
    server = Server(c=claim(**{"volume.kubernetes.io/storage-provisioner": "csi"}))
    with pytest.raises(VolumeProblem):
        await server.binding().prepare(bind())
    assert server.objects[CLAIM.format("c")]["metadata"]["annotations"][SELECTED_NODE] == "n1"


async def test_a_claim_that_is_deleted_meanwhile_leaves_its_volume_free() -> None:
    server = Server(c=claim(), volume=volume())
    server.then = is_gone
    with pytest.raises(ApiError):
        await server.binding().prepare(bind("v"))
    assert "claimRef" not in server.objects[VOLUME.format("v")]["spec"]


@pytest.mark.parametrize(
    ("found", "kept", "uid", "why"),
    [
        pytest.param({**claim(), "metadata": {"deletionTimestamp": "now"}}, {}, "", "being deleted", id="going"),
        pytest.param(claim(), {}, "older", "another one by now", id="made anew"),
        pytest.param(claim(), {"claimRef": {"namespace": "ns", "name": "x"}}, "u", "another claim", id="taken"),
    ],
)
async def test_what_has_changed_meanwhile_is_left_as_it_is(found: Any, kept: Any, uid: str, why: str) -> None:
    server = Server(c=found, volume=volume(**kept))
    before = copy.deepcopy(server.objects)
    with pytest.raises(VolumeProblem, match=why):
        await server.binding().prepare(bind("v", uid))
    assert server.objects == before


async def test_a_provisioner_that_gives_up_is_heard() -> None:
    server = Server(c=claim())
    server.then = lambda server: server.objects[CLAIM.format("c")]["metadata"]["annotations"].clear()
    with pytest.raises(VolumeProblem, match="no volume could be made"):
        await server.binding().prepare(bind())


async def test_a_bound_claim_stays_bound_where_its_pod_was_not() -> None:
    server = Server(c=claim(), volume=volume())
    server.then = is_bound
    hook = server.binding()
    await hook.prepare(bind("v"))
    await hook.undo(bind("v"))
    assert "claimRef" in server.objects[VOLUME.format("v")]["spec"]
