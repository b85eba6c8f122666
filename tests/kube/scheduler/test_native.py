"""Kubernetes' own gangs on a real API server, under both policy languages: bound whole, and their groups say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import KAI_QUEUES, NATIVE_POD_GROUPS, PODS, QUEUES
from pumice.model.workloads.native_group import SCHEDULED_IN_V1ALPHA2
from tests.kube.objects import create, install_crds, node, pod
from tests.kube.running import eventually
from tests.kube.running import running as scheduling
from tests.kube.server import running

Obj = dict[str, Any]
ALPHA2 = next(kind for kind in NATIVE_POD_GROUPS.versions if kind.version == "v1alpha2")
GATES = ("--feature-gates=GenericWorkload=true,GangScheduling=true", f"--runtime-config={ALPHA2.api_version}=true")
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
#: The scheduler's name, its policy, and the queue of the gang.
VOLCANO = "volcano", "", {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "q"}}
KAI = (
    "kai-scheduler",
    "dialect: kai\n",
    {
        "apiVersion": KAI_QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"resources": {"cpu": FREE, "memory": FREE, "gpu": FREE}},
    },
)


@pytest.mark.parametrize(("name", "policy", "queue"), [VOLCANO, KAI], ids=["volcano", "kai"])
async def test_a_native_gang_is_bound_whole(assets: Path, tmp_path: Path, name: str, policy: str, queue: Obj) -> None:
    flags = ["--leader-elect=false"]
    if policy:
        (tmp_path / "policy.conf").write_text(policy)
        flags.append(f"--scheduler-conf={tmp_path / 'policy.conf'}")
    with running(assets, tmp_path / "api", *GATES) as server:
        async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
            await install_crds(client)
            kind = KAI_QUEUES if policy else QUEUES
            await client.post(kind.list_path, queue)
            await create(client, node("n"))
            metadata = {
                "name": "team",
                "annotations": {"scheduling.volcano.sh/queue-name": "q"},
                "labels": {"kai.scheduler/queue": "q"},
            }
            spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
            head = {"apiVersion": ALPHA2.api_version, "kind": ALPHA2.kind}
            await client.post(ALPHA2.namespace_path("default"), {**head, "metadata": metadata, "spec": spec})

            async def condition() -> tuple[str, str]:
                status = (await client.get(ALPHA2.path("default/team"))).get("status", {})
                of_type = [c for c in status.get("conditions", []) if c["type"] == SCHEDULED_IN_V1ALPHA2]
                return (of_type[0]["status"], of_type[0]["reason"]) if of_type else ("", "")

            async def nodes() -> list[str]:
                found = await client.get(PODS.namespace_path("default"))
                return [each["spec"].get("nodeName", "") for each in found["items"]]

            async def waits() -> bool:
                return await condition() == ("False", "Unschedulable")

            async def is_scheduled() -> bool:
                return await condition() == ("True", "Scheduled")

            async def all_bound() -> bool:
                return await nodes() == ["n", "n"]

            with scheduling(tmp_path, server.kubeconfig(), *flags) as scheduler:
                group = {"podGroupName": "team"}
                tolerations = [{"operator": "Exists"}]
                await create(
                    client, pod("default", "p-0", schedulerName=name, schedulingGroup=group, tolerations=tolerations)
                )
                # KAI says nothing of a gang whose pods are not all there.
                if not policy:
                    await eventually(waits, scheduler.text)
                    assert await nodes() == [""]
                await create(
                    client, pod("default", "p-1", schedulerName=name, schedulingGroup=group, tolerations=tolerations)
                )
                await eventually(all_bound, scheduler.text)
                await eventually(is_scheduled, scheduler.text)
