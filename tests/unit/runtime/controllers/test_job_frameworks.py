"""What jobs of MPI, PyTorch and Ray find in their pods, and the keys with which these come into each other."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pumice.runtime.controllers.job_ssh import NoKeys, new_keys
from pumice.runtime.controllers.writes import Emit
from tests.unit.runtime.controllers.job_world import World, task


def container(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def env_of(pod: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container(pod).get("env", ())}


def ports_of(pod: dict[str, Any]) -> dict[str, int]:
    return {each["name"]: each["containerPort"] for each in container(pod).get("ports", ())}


def named(name: str, main: str, replicas: int = 1) -> dict[str, Any]:
    """A task whose pods have one container of this name."""
    found = task(name, replicas)
    found["template"]["spec"]["containers"][0]["name"] = main
    return found


def test_mpi_tells_the_master_where_its_workers_are() -> None:
    world = World(task("boss", 1), task("w", 2), plugins={"mpi": ["--master=boss", "--worker=w", "--port=5000"]})
    world.admit()
    assert env_of(world.pods["j-boss-0"])["MPI_HOST"] == "j-w-0.j,j-w-1.j"
    assert "MPI_HOST" not in env_of(world.pods["j-w-0"])
    assert {name: ports_of(pod) for name, pod in world.pods.items()} == {
        name: {"mpijob-port": 5000} for name in ("j-boss-0", "j-w-0", "j-w-1")
    }
    assert ("Service", "j") in world.objects and ("Secret", "j-ssh-job-uid") in world.objects
    assert world.status("controlledResources") == {"plugin-mpi": "mpi", "plugin-svc": "svc", "plugin-ssh": "ssh"}


def test_ranks_on_npus_count_masters_first_unless_a_pod_says_its_own() -> None:
    own, said = task("w", 2), task("x", 1)
    said["template"]["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "7"}]
    written = task("boss", 3)
    written["template"]["metadata"] = {"annotations": {"hccl/rankIndex": "9"}}
    arguments = ["--master=boss", "--worker", "w"]
    world = World(task("other", 1), own, said, task("boss", 3), plugins={"hcclrank": arguments})
    world.admit()
    ranks = {name: pod["metadata"]["annotations"].get("hccl/rankIndex") for name, pod in world.pods.items()}
    bosses = {f"j-boss-{i}": str(i) for i in range(3)}
    assert ranks == {**bosses, "j-w-0": "3", "j-w-1": "4", "j-x-0": "7", "j-other-0": None}
    kept = World(written, plugins={"hcclrank": ["--master=boss"]})
    kept.admit()
    assert {pod["metadata"]["annotations"]["hccl/rankIndex"] for pod in kept.pods.values()} == {"9"}


def test_a_port_that_a_container_opens_itself_is_not_opened_twice() -> None:
    own = task("master", 1)
    own["template"]["spec"]["containers"][0]["ports"] = [{"name": "mine", "containerPort": 23456}]
    world = World(own, task("worker", 1), plugins={"pytorch": []})
    world.admit()
    assert ports_of(world.pods["j-master-0"]) == {"mine": 23456}
    assert ports_of(world.pods["j-worker-0"]) == {"pytorchjob-port": 23456}


def test_ray_begins_with_its_head_and_workers_join() -> None:
    world = World(named("head", "head"), named("w", "main", 2), named("log", "log"), plugins={"ray": _RAY})
    world.admit()
    head, worker = container(world.pods["j-head-0"]), container(world.pods["j-w-1"])
    assert head["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=99 --ray-client-server-port=77",
    ]
    assert worker["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:6379"]
    assert "command" not in container(world.pods["j-log-0"])
    assert ports_of(world.pods["j-head-0"]) == {"gcs": 6379, "dashboard": 99, "client": 77}
    assert ports_of(world.pods["j-w-0"]) == {}
    service = world.objects["Service", "j-head-svc"]["spec"]
    assert {each["name"]: each["port"] for each in service["ports"]} == {"gcs": 6379, "dashboard": 99, "client": 77}
    selects = service["selector"].items()
    assert [name for name, pod in world.pods.items() if selects <= pod["metadata"]["labels"].items()] == ["j-head-0"]


_RAY = ["--worker=w", "--workerContainer=main", "--dashboardPort=99", "--clientPort=77"]


def test_a_task_without_the_container_for_ray_is_named() -> None:
    world = World(named("head", "main"), plugins={"ray": []})
    world.settle()
    (said,) = {each.message for each in world.reports if isinstance(each, Emit) and each.reason == "PluginArgument"}
    assert said == "ray: task head has no container head, so Ray is not started in it"


def test_pods_come_into_each_other_by_keys_of_their_job() -> None:
    world = World(task("w", 2), plugins={"ssh": ["--ssh-port=2222", "--ssh-key-file-path=/keys"], "svc": []})
    world.admit()
    secret = world.objects["Secret", "j-ssh-job-uid"]
    files = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert (files["id_rsa"], files["authorized_keys"], files["id_rsa.pub"]) == ("private", "public", "public")
    assert "Host j-w-1\n  HostName j-w-1.j\n  Port 2222\n" in files["config"]
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "job-uid"
    for pod in world.pods.values():
        (volume,) = [each for each in pod["spec"]["volumes"] if "secret" in each]
        assert volume["secret"] == {"secretName": "j-ssh-job-uid", "defaultMode": 0o600}
        mounts = {each["name"]: each["mountPath"] for each in container(pod)["volumeMounts"]}
        assert mounts[volume["name"]] == "/keys"


def test_keys_are_made_once_and_given_ones_are_taken() -> None:
    def none() -> Any:
        raise AssertionError("nobody asked for new keys")

    world = World(plugins={"ssh": []})
    world.admit()
    world.new_keys = none
    world.settle()
    given = World(plugins={"ssh": ["--ssh-private-key=a b", "--ssh-public-key=c d"]})
    given.new_keys = none
    given.admit()
    assert base64.b64decode(given.objects["Secret", "j-ssh-job-uid"]["data"]["id_rsa"]) == b"a b"


def test_a_job_whose_keys_cannot_be_made_is_reported() -> None:
    def none() -> Any:
        raise NoKeys("there is no openssl")

    world = World(plugins={"ssh": []})
    world.new_keys = none
    world.settle()
    assert {(each.reason, each.message) for each in world.reports} == {("PluginError", "there is no openssl")}
    assert world.group is None


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen to read keys with")
def test_ssh_reads_the_keys(tmp_path: Path) -> None:
    keys = new_keys()
    (tmp_path / "id").touch(0o600)
    (tmp_path / "id").write_text(keys.private)
    read = subprocess.run(["ssh-keygen", "-y", "-f", str(tmp_path / "id")], capture_output=True, text=True, check=True)
    assert read.stdout.split()[:2] == keys.public.split()


def test_keys_are_a_pair_as_openssh_writes_it() -> None:
    """Length and text of each part (RFC 4253): the kind, the exponent, a modulus of 2,048 bits, which is positive."""
    keys = new_keys()
    kind, text = keys.public.split()
    blob, parts = base64.b64decode(text), []
    while blob:
        size = int.from_bytes(blob[:4], "big")
        parts.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    assert (kind, parts[0], parts[1]) == ("ssh-rsa", b"ssh-rsa", b"\x01\x00\x01")
    assert (len(parts[2]), parts[2][0]) == (257, 0)
    assert keys.private.startswith("-----BEGIN RSA PRIVATE KEY-----")
