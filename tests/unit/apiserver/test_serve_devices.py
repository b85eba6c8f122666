"""``pumice serve --schedule``: devices for the extended resources of a pod, and the claim that is made for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.commands import serving_command
from tests.unit.apiserver.test_serve_schedule import user_of

DEVICES = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
NPU = "example.com/npu"


def made(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def test_a_pod_runs_with_devices_and_says_which_claim_they_are_in(tmp_path: Path) -> None:
    container = {"name": "main", "image": "i:1", "resources": {"limits": {NPU: "2"}, "requests": {NPU: "2"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"pumice.dev/duration": "1h"}},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }
    with serving_command(tmp_path, "--nodes", "1:cpu=8,memory=32Gi", "--schedule") as served:
        async with user_of(served) as user:
            (node,) = (await user.get("/api/v1/nodes"))["items"]
            name = node["metadata"]["name"]
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": "a"}, {"name": "b"}]
            await user.create(f"{DEVICES}/deviceclasses", made("DeviceClass", "npu", extendedResourceName=NPU))
            await user.create(
                f"{DEVICES}/resourceslices",
                made("ResourceSlice", "s", driver="npu.com", nodeName=name, pool=pool, devices=devices),
            )
            await user.create(PODS, pod)
            ran = await user.waits_for(PODS, lambda obj: (obj.get("status") or {}).get("phase") == "Running")
            said = ran["status"]["extendedResourceClaimStatus"]
            (claim,) = (await user.get(f"{DEVICES}/namespaces/default/resourceclaims"))["items"]
    assert claim["metadata"]["name"] == said["resourceClaimName"]
    assert [each["containerName"] for each in said["requestMappings"]] == ["main"]
    assert [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]] == ["a", "b"]
    assert claim["metadata"]["ownerReferences"][0]["uid"] == ran["metadata"]["uid"]


@pytest.mark.parametrize(("conf", "scheduler"), [("", "volcano"), ("dialect: kai\n", "kai-scheduler")])
async def test_pods_that_ask_by_template_run_to_their_end_one_after_the_other(
    tmp_path: Path, conf: str, scheduler: str
) -> None:
    (tmp_path / "policy.conf").write_text(conf)
    policy = ("--scheduler-conf", str(tmp_path / "policy.conf")) if conf else ()
    asking = {"requests": [{"name": "r", "exactly": {"deviceClassName": "npu"}}]}
    template = made("ResourceClaimTemplate", "one", spec={"devices": asking})
    with serving_command(tmp_path, "--nodes", "1:cpu=8,memory=32Gi", "--schedule", "--speed", "10", *policy) as served:
        async with user_of(served) as user:
            (node,) = (await user.get("/api/v1/nodes"))["items"]
            name = node["metadata"]["name"]
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            await user.create(f"{DEVICES}/deviceclasses", made("DeviceClass", "npu"))
            await user.create(
                f"{DEVICES}/resourceslices",
                made("ResourceSlice", "s", driver="npu.com", nodeName=name, pool=pool, devices=[{"name": "a"}]),
            )
            await user.create(f"{DEVICES}/namespaces/default/resourceclaimtemplates", template)
            # One device for all: each pod needs what the one before has given back.
            for each in ("p", "q", "r"):
                pod = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": each, "annotations": {"pumice.dev/duration": "1s"}},
                    "spec": {
                        "schedulerName": scheduler,
                        "containers": [{"name": "main", "image": "i:1"}],
                        "resourceClaims": [{"name": "npu", "resourceClaimTemplateName": "one"}],
                    },
                }
                await user.create(PODS, pod)
            await user.sees(PODS, "Succeeded", 3)
            assert (await user.get(f"{DEVICES}/namespaces/default/resourceclaims"))["items"] == []
