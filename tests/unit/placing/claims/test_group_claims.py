"""Claims that the pods of a PodGroup of Kubernetes share: given once, and reserved for the group."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pumice.model.decisions import CLAIMS, ClaimGrant
from pumice.model.devices.claims import AllocatedDevice, Allocation
from pumice.model.status import TaskStatus
from pumice.model.workloads.native_group import GroupClaim, GroupRef, NativeGroup
from pumice.placing.claims.ledger import claim_ledger
from pumice.testing.build import cluster, node, pod, podgroup, run
from pumice.testing.devices import claim, claim_template, offered
from tests.unit.placing.claims.kit import CONF, GPU, on, opened, task

GROUP = GroupRef("g", "u-g", "scheduling.k8s.io/v1")
SHARED = GroupClaim(GROUP, "gpus", "template/t")


def members(count: int, entry: str = "gpus", **more: Any) -> list[Any]:
    return [pod(f"p{i}", "g", resource_claims=("template/t",), claim_entries=(entry,), **more) for i in range(count)]


def group(minimum: int, *claims: GroupClaim) -> Any:
    return replace(podgroup("g", minimum, phase="Inqueue"), native=NativeGroup("scheduling.k8s.io/v1", claims=claims))


def grants(*objects: Any) -> dict[str, ClaimGrant]:
    store = cluster(node("n1", 2), node("n2"), GPU, claim_template("t", gpu_com=1), *objects)
    return {bind.pod: bind.context[CLAIMS][0] for bind in run(store, CONF).decisions}


def test_a_gang_gets_one_device_for_all_its_pods_on_the_node_of_the_device() -> None:
    found = grants(offered("n2", 1), group(4, SHARED), members(4))
    assert len(found) == 4
    assert {each.claim for each in found.values()} == {"ns/podgroup/g/gpus"}
    assert {each.group for each in found.values()} == {GROUP}
    assert {each.allocation for each in found.values()} == {
        Allocation((AllocatedDevice("r0", "gpu.com", "n2", "0"),), on("n2"))
    }


def test_a_claim_with_another_entry_is_the_pods_own() -> None:
    assert not grants(offered("n2", 1), group(2, SHARED), members(2, "other"))
    found = grants(offered("n2", 2), group(2, SHARED), members(2, "other"))
    assert {each.claim for each in found.values()} == {"ns/p0/0", "ns/p1/0"}
    assert {each.group for each in found.values()} == {None}


def test_the_claim_that_was_made_for_the_group_is_used() -> None:
    made = replace(claim("made", gpu_com=1), reserved_for=("u-g",))
    given = replace(made, allocation=Allocation((AllocatedDevice("r0", "gpu.com", "n2", "0"),), on("n2")))
    shared = replace(SHARED, made="made")
    found = grants(offered("n2", 1), group(2, shared), members(2), given)
    assert {each.claim for each in found.values()} == {"ns/made"}
    assert {each.allocation for each in found.values()} == {None}


def test_a_group_of_more_pods_than_a_claim_has_consumers_shares_it() -> None:
    count = 260
    big = node("n2", 1000, "4000Gi", pods=500)
    store = cluster(big, GPU, claim_template("t", gpu_com=1), offered("n2", 1), group(count, SHARED), members(count))
    assert len(run(store, CONF).decisions) == count


def test_devices_of_a_group_stay_with_it_while_its_pods_leave() -> None:
    given = replace(
        claim("made", gpu_com=1),
        allocation=Allocation((AllocatedDevice("r0", "gpu.com", "n2", "0"),), on("n2")),
        reserved_for=("u-g",),
    )
    leaving = members(1, on="n2", deletion=1.0)
    waits = podgroup("h", 1, phase="Inqueue"), pod("w", "h", resource_claims=("template/t",))
    there = node("n2"), GPU, claim_template("t", gpu_com=1), offered("n2", 1), given
    ssn = opened(cluster(*there, group(1, replace(SHARED, made="made")), leaving, waits))
    ledger = claim_ledger(ssn)
    assert ssn.tables.tasks.status[task(ssn, "p0").row] == TaskStatus.RELEASING
    assert not ledger.free().soon.any()
