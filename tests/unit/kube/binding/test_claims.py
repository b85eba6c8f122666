"""What claims say before their pod is bound, and that nothing of it is left where the pod was not."""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.encode_kai import kai_bind_request
from pumice.kube.api.errors import ApiError
from pumice.kube.binding.claims import ClaimBinding, ClaimProblem, claims_to_be_given, extended_to_be_given
from pumice.model.bind_request import BindRequest
from pumice.model.decisions import CLAIMS, Bind, ClaimGrant
from pumice.model.devices.claims import CLAIM_FINALIZER, AllocatedDevice, Allocation, DeviceOption, DeviceRequest
from pumice.model.devices.extended import ExtendedRequests, RequestMapping
from pumice.model.workloads.native_group import NATIVE_VERSIONS, GroupRef

GIVEN = Allocation((AllocatedDevice("r", "gpu.com", "n1", "0"),))
OTHER = Allocation((AllocatedDevice("r", "gpu.com", "n1", "1"),))
CLAIM, POD = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/{}", "/api/v1/namespaces/ns/pods/{}"


class Server:
    """Objects by path; a status is written below its object, and only by who read the last version."""

    def __init__(self, **objects: dict[str, Any]) -> None:
        self.objects: dict[str, Any] = {}
        for name, obj in objects.items():
            self.objects[POD.format(name) if obj.get("kind") == "Pod" else CLAIM.format(name)] = obj
        self.conflicts = 0
        self.refuses = ""
        self.absent: list[str] = []  # paths that were asked for in vain

    async def get(self, path: str) -> Any:
        if path not in self.objects:
            self.absent.append(path)
            raise ApiError(404, "NotFound", "", path)
        return copy.deepcopy(self.objects[path])

    async def put(self, path: str, body: Any) -> Any:
        if self.refuses and self.refuses in path:
            raise ApiError(403, "Forbidden", "", path)
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "", path)
        part = "status" if path.endswith("/status") else "metadata"
        found = self.objects[path.removesuffix("/status")]
        found[part] = copy.deepcopy(body[part])
        return copy.deepcopy(found)

    async def post(self, path: str, body: Any) -> bytes:
        name = f"{body['metadata'].pop('generateName')}0"
        made = {**body, "metadata": {**body["metadata"], "name": name}, "status": {}}
        self.objects[f"{path}/{name}"] = copy.deepcopy(made)
        return json.dumps(made).encode()

    async def patch(self, path: str, body: Any) -> bytes:
        self.objects[path.removesuffix("/status")]["status"] |= body["status"]
        return b"{}"

    async def delete(self, path: str, uid: str = "") -> bytes:
        assert not self.objects[path]["metadata"].get("finalizers"), "it would stay"
        del self.objects[path]
        return b"{}"

    def claim(self, name: str) -> Any:
        return self.objects[CLAIM.format(name)]

    def binding(self) -> ClaimBinding:
        return ClaimBinding(cast(Client, self))


def claim(*users: str, given: Allocation | None = None, **metadata: Any) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if given is not None:
        device = given.devices[0]
        result = {"request": "r", "driver": device.driver, "pool": device.pool, "device": device.device}
        status = {"allocation": {"devices": {"results": [result]}}}
    if users:
        status["reservedFor"] = [{"resource": "pods", "name": uid, "uid": uid} for uid in users]
    return {"metadata": {"name": "c", **metadata}, "status": status}


def bind(*grants: ClaimGrant, pod: str = "a") -> Bind:
    return Bind(f"ns/{pod}", f"u-{pod}", "n1", "ns/g", {CLAIMS: grants})


NEW, SHARED = ClaimGrant("ns/c", GIVEN), ClaimGrant("ns/c", None)


async def test_a_claim_says_what_it_was_given_and_to_whom() -> None:
    server = Server(c=claim())
    await server.binding().prepare(bind(NEW))
    status = server.claim("c")["status"]
    assert status["allocation"]["devices"]["results"][0]["device"] == "0"
    assert status["reservedFor"] == [{"resource": "pods", "name": "a", "uid": "u-a"}]
    assert server.claim("c")["metadata"]["finalizers"] == [CLAIM_FINALIZER]


async def test_undone_nothing_is_left_of_it() -> None:
    server = Server(c=claim())
    await server.binding().prepare(bind(NEW))
    await server.binding().undo(bind(NEW))
    assert server.claim("c") == {"metadata": {"name": "c", "finalizers": []}, "status": {}}


async def test_undone_a_claim_that_others_use_keeps_its_devices() -> None:
    server = Server(c=claim())
    hook = server.binding()
    await hook.prepare(bind(NEW))
    await hook.prepare(bind(NEW, pod="b"))
    await hook.undo(bind(NEW))
    status = server.claim("c")["status"]
    assert [user["uid"] for user in status["reservedFor"]] == ["u-b"]
    assert "allocation" in status


async def test_undone_a_claim_that_had_its_devices_before_keeps_them() -> None:
    server = Server(c=claim(given=GIVEN))
    await server.binding().prepare(bind(SHARED))
    await server.binding().undo(bind(SHARED))
    assert server.claim("c")["status"] == claim(given=GIVEN)["status"]


@pytest.mark.parametrize(
    ("found", "grant", "why"),
    [
        pytest.param(claim(), SHARED, "has lost its devices", id="lost"),
        pytest.param(claim(given=OTHER), NEW, "was given other devices in the meantime", id="others were faster"),
        pytest.param(claim(deletionTimestamp="now"), NEW, "is being deleted", id="going"),
        pytest.param(claim(*map(str, range(256)), given=GIVEN), SHARED, "as many users", id="full"),
    ],
)
async def test_a_claim_that_has_changed_meanwhile_is_left_as_it_is(found: Any, grant: ClaimGrant, why: str) -> None:
    server, before = Server(c=found), copy.deepcopy(found)
    with pytest.raises(ClaimProblem, match=why):
        await server.binding().prepare(bind(grant))
    assert server.claim("c") == before


async def test_a_claim_that_fails_takes_those_before_it_back() -> None:
    server = Server(c=claim(), d=claim(given=OTHER))
    with pytest.raises(ClaimProblem):
        await server.binding().prepare(bind(NEW, ClaimGrant("ns/d", GIVEN)))
    assert server.claim("c")["status"] == {}


async def test_undone_claims_are_released_although_another_cannot_be() -> None:
    server, two = Server(c=claim(), d=claim()), bind(NEW, ClaimGrant("ns/d", GIVEN))
    await server.binding().prepare(two)
    server.refuses = CLAIM.format("d")
    with pytest.raises(ApiError):
        await server.binding().undo(two)
    assert server.claim("c")["status"] == {}
    assert server.claim("d")["status"] != {}


async def test_a_claim_that_is_gone() -> None:
    with pytest.raises(ApiError):
        await Server().binding().prepare(bind(NEW))
    await Server().binding().undo(bind(NEW))


@pytest.mark.parametrize(("times", "fails"), [(3, False), (99, True)])
async def test_who_writes_at_the_same_time_is_waited_for_so_often(times: int, fails: bool) -> None:
    server = Server(c=claim(finalizers=[CLAIM_FINALIZER]))
    server.conflicts = times
    if fails:
        with pytest.raises(ApiError):
            await server.binding().prepare(bind(NEW))
    else:
        await server.binding().prepare(bind(NEW))
        assert "allocation" in server.claim("c")["status"]


async def test_the_claim_of_a_template_is_named_by_its_pod() -> None:
    pod = {"kind": "Pod", "spec": {"resourceClaims": [{"name": "gpu"}]}}
    server = Server(a=pod, made=claim())
    with pytest.raises(ClaimProblem, match="does not exist yet"):
        await server.binding().prepare(bind(ClaimGrant("ns/a/0", GIVEN)))
    pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}
    await server.binding().prepare(bind(ClaimGrant("ns/a/0", GIVEN)))
    assert "allocation" in server.claim("made")["status"]


async def test_a_pod_without_claims_asks_nobody() -> None:
    await Server().binding().prepare(Bind("ns/a", "u-a", "n1", "ns/g"))


def pod_with_claims() -> dict[str, Any]:
    """One claim by name, one that was made for it from a template."""
    asked = [{"name": "mine", "resourceClaimTemplateName": "t"}, {"name": "shared", "resourceClaimName": "c"}]
    made = [{"name": "mine", "resourceClaimName": "a-mine-x"}]
    return {"kind": "Pod", "spec": {"resourceClaims": asked}, "status": {"resourceClaimStatuses": made}}


@pytest.mark.parametrize("made", ["ns/a-mine-x", "ns/a/0"], ids=["by its name", "by its place"])
async def test_kais_binder_is_given_the_devices_of_each_claim_of_the_pod(made: str) -> None:
    """By the names that the pod calls them, with what a claim was given before."""
    server = Server(c=CLAIM_OBJECT, a=pod_with_claims())
    found = await claims_to_be_given(cast(Client, server), bind(ClaimGrant(made, OTHER), SHARED))
    assert found == (("mine", OTHER), ("shared", GIVEN))
    request = kai_bind_request(BindRequest("ns", "a", "a", "n1", claims=found))
    each = request["spec"]["resourceClaimAllocations"]
    assert [(one["name"], one["allocation"]["devices"]["results"][0]["device"]) for one in each] == [
        ("mine", "1"),
        ("shared", "0"),
    ]


CLAIM_OBJECT = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ns"},
    "spec": {"devices": {"requests": []}},
    "status": claim(given=GIVEN)["status"],
}


@pytest.mark.parametrize(
    ("grants", "why"),
    [
        pytest.param((ClaimGrant("ns/other", OTHER), SHARED), "is another one than was decided about", id="other"),
        pytest.param((ClaimGrant("ns/a/0", None), SHARED), "404", id="not there"),
    ],
)
async def test_nothing_is_asked_of_kais_binder_for_claims_that_have_changed(
    grants: tuple[ClaimGrant, ...], why: str
) -> None:
    server = Server(c=CLAIM_OBJECT, a=pod_with_claims())
    with pytest.raises((ClaimProblem, ApiError), match=why):
        await claims_to_be_given(cast(Client, server), bind(*grants))


EXTENDED = ExtendedRequests(
    (DeviceRequest("container-0-request-1", (DeviceOption("gpu.com", 2),)),),
    (RequestMapping(0, "example.com/npu", "container-0-request-1"),),
)
UNMADE_CLAIM = ClaimGrant("ns/a/extended-resources", GIVEN, EXTENDED)


def pod(**status: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main"}]}, "status": status}


async def test_the_claim_for_extended_resources_is_made_and_the_pod_says_so() -> None:
    server = Server(a=pod())
    await server.binding().prepare(bind(UNMADE_CLAIM))
    made = server.claim("a-extended-resources-0")
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u-a"
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    assert made["status"]["reservedFor"] == [{"resource": "pods", "name": "a", "uid": "u-a"}]
    assert server.objects[POD.format("a")]["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "a-extended-resources-0",
        "requestMappings": [
            {"containerName": "main", "resourceName": "example.com/npu", "requestName": "container-0-request-1"}
        ],
    }


async def test_the_claim_for_extended_resources_goes_if_the_pod_is_not_bound() -> None:
    server = Server(a=pod())
    await server.binding().prepare(bind(UNMADE_CLAIM))
    await server.binding().undo(bind(UNMADE_CLAIM))
    assert CLAIM.format("a-extended-resources-0") not in server.objects


async def test_the_claim_for_extended_resources_goes_if_it_cannot_be_given_its_devices() -> None:
    server = Server(a=pod())
    server.refuses = "/status"
    with pytest.raises(ApiError):
        await server.binding().prepare(bind(UNMADE_CLAIM))
    assert list(server.objects) == [POD.format("a")]


async def test_a_bind_request_says_what_claim_is_to_be_made_for_extended_resources() -> None:
    server = Server(a=pod())
    assert await claims_to_be_given(cast(Client, server), bind(UNMADE_CLAIM)) == ()
    text = await extended_to_be_given(cast(Client, server), bind(UNMADE_CLAIM))
    found = kai_bind_request(BindRequest("ns", "a", "a", "n1", extended_claim=text))["spec"]
    said = found["extendedResourceClaimAllocation"]
    assert said["allocation"]["devices"]["results"][0]["device"] == "0"
    assert said["deviceRequests"][0]["name"] == said["containerMappings"][0]["requestName"]


@pytest.mark.parametrize("version", NATIVE_VERSIONS)
async def test_a_claim_of_a_group_is_reserved_for_the_group_and_stays_so(version: str) -> None:
    group = f"/apis/scheduling.k8s.io/{version}/namespaces/ns/podgroups/g"
    server = Server(c=claim(), a=pod())
    server.objects[group] = {"status": {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "c"}]}}
    shared = ClaimGrant("ns/podgroup/g/gpus", GIVEN, group=GroupRef("g", "u-g", f"scheduling.k8s.io/{version}"))
    await server.binding().prepare(bind(shared))
    assert server.absent == [], "the group is read in the version in which it was seen"
    await server.binding().prepare(bind(shared, pod="b"))
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u-g"}
    assert server.claim("c")["status"]["reservedFor"] == [user]
    await server.binding().undo(bind(shared, pod="b"))
    assert server.claim("c")["status"]["reservedFor"] == [user]
    assert "allocation" in server.claim("c")["status"]
