"""Manifests as controllers make them run to their end on the embedded server, whose scheduler runs in its process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ecosystem.gangs import CLUSTERS, MANIFESTS
from tests.unit.apiserver.commands import serving_command
from tests.unit.apiserver.test_serve_schedule import User, user_of

Obj = dict[str, Any]
CONFS = {"volcano": "", "native": "", "kai": "dialect: kai\n"}
#: API groups of kinds that the server has.
_SERVED = {"", "apps", "batch", "scheduling.k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"}


def documents(path: Path) -> list[Obj]:
    """Return the objects of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def group_of(obj: Obj) -> str:
    return str(obj["apiVersion"]).rpartition("/")[0]


def plural_of(obj: Obj) -> str:
    return str(obj["kind"]).lower() + "s"


def path_of(obj: Obj) -> str:
    version = obj["apiVersion"]
    start = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{start}/namespaces/{obj['metadata']['namespace']}/{plural_of(obj)}"


def definitions(objects: list[Obj]) -> Iterator[Obj]:
    """Yield a CustomResourceDefinition for each kind that the server does not have: any fields."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for obj in objects:
        if group_of(obj) not in _SERVED:
            kinds.setdefault((group_of(obj), obj["kind"]), set()).add(obj["apiVersion"].rpartition("/")[2])
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for (group, kind), versions in sorted(kinds.items()):
        plural = plural_of({"kind": kind})
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {"name": version, "served": True, "storage": i == 0, "schema": schema}
                    for i, version in enumerate(sorted(versions))
                ],
            },
        }


async def create_all(user: User, namespace: str, objects: list[Obj]) -> None:
    """Create the objects of a manifest, with the uids that the server gives to their owners."""
    uids: dict[str, str] = {}
    for obj in objects:
        metadata = {key: value for key, value in obj["metadata"].items() if key != "uid"} | {"namespace": namespace}
        owners = metadata.get("ownerReferences", ())
        # An owner that does not exist would have the object collected as garbage.
        metadata["ownerReferences"] = [{**each, "uid": uids[each["uid"]]} for each in owners if each["uid"] in uids]
        if obj["kind"] == "Pod":
            metadata["annotations"] = {**(metadata.get("annotations") or {}), "pumice.dev/duration": "1s"}
        made = {**obj, "metadata": metadata}
        await user.create(path_of(made), made)
        stored = await user.get(f"{path_of(made)}/{metadata['name']}")
        uids[obj["metadata"]["uid"]] = stored["metadata"]["uid"]


@pytest.mark.parametrize("form", CONFS)
async def test_all_pods_run_to_their_end(tmp_path: Path, form: str) -> None:
    (tmp_path / "policy.conf").write_text(CONFS[form])
    conf = ("--scheduler-conf", str(tmp_path / "policy.conf")) if CONFS[form] else ()
    manifests = [each for each in MANIFESTS if each.parent.name == form]
    everything = {each.stem: documents(each) for each in manifests}
    counts = {name: sum(obj["kind"] == "Pod" for obj in objects) for name, objects in everything.items()}
    assert all(counts.values()), "a manifest without pods would run to its end unseen"
    pods = sum(counts.values())
    with serving_command(tmp_path, str(CLUSTERS[form]), "--schedule", "--speed", "10", *conf) as served:
        async with user_of(served) as user:
            for definition in definitions([obj for objects in everything.values() for obj in objects]):
                await user.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
            for namespace, objects in everything.items():
                await user.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
                await create_all(user, namespace, objects)
            await user.sees("/api/v1/pods", "Succeeded", pods)
            if form == "kai":
                # Of a kind without a rule: its definition and itself are read by the names that discovery gives.
                made = await user.get("/apis/scheduling.run.ai/v2alpha2/namespaces/karta/podgroups")
                (group,) = made["items"]
                assert group["metadata"]["name"].endswith("-training") and len(group["spec"]["subGroups"]) == 2
