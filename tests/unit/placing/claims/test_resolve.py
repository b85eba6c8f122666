"""Which claims the pods of a snapshot use: by name, or made from a template."""

from __future__ import annotations

import pytest

from pumice.model.devices.claims import AllocatedDevice, Allocation, ResourceClaim
from pumice.model.pod import Pod
from pumice.placing.claims.resolve import claim_keys, claiming_tasks, resolved_claims
from pumice.testing.build import pod
from pumice.testing.devices import claim, claim_template, offered
from tests.unit.placing.claims.kit import claiming, given, opened, task, world


def test_each_pod_of_a_template_has_devices_of_its_own() -> None:
    each = [claiming(name, "template/t") for name in "abc"]
    store = world(offered("n1", 2), claim_template("t", gpu_com=1), each, names="abc")
    assert given(store) == {"ns/a/0": [("n1", "0")], "ns/b/0": [("n1", "1")]}


@pytest.mark.parametrize(
    ("names", "made", "keys"),
    [
        pytest.param(("c",), (), [("ns/c", "")], id="by name"),
        pytest.param(("template/t",), (), [("ns/p/0", "ns/template/t")], id="not made yet"),
        pytest.param(("template/t",), ("",), [("ns/p/0", "ns/template/t")], id="made, and not said under which name"),
        pytest.param(("template/t",), ("p-t-x1",), [("ns/p-t-x1", "")], id="made"),
        pytest.param(("c", "template/t"), (), [("ns/c", ""), ("ns/p/1", "ns/template/t")], id="by its place"),
    ],
)
def test_what_a_claim_of_a_pod_is_called(
    names: tuple[str, ...], made: tuple[str, ...], keys: list[tuple[str, str]]
) -> None:
    assert [found[:2] for found in claim_keys(pod("p", resource_claims=names, made_claims=made))] == keys


@pytest.mark.parametrize(
    ("one", "uses"),
    [
        pytest.param(claiming("a", "c"), True, id="waits"),
        pytest.param(claiming("a", "c", on="n1"), True, id="runs"),
        pytest.param(claiming("a", "c", on="n1", phase="Succeeded"), False, id="has ended"),
        pytest.param(claiming("a", "c", on="n1", phase="Failed"), False, id="has failed"),
        pytest.param(pod("a", "a"), False, id="claims nothing"),
    ],
)
def test_tasks_that_use_claims(one: Pod, uses: bool) -> None:
    """Beside one that does, so that there are claims to look at."""
    ssn = opened(world(one, claiming("b", "c"), names="ab"))
    names = {ssn.tables.tasks.pods[row].name for row in claiming_tasks(ssn.tables)}
    assert names == ({"a", "b"} if uses else {"b"})


def test_claims_that_nobody_uses_count_where_they_have_devices() -> None:
    idle = ResourceClaim("ns", "idle", allocation=Allocation((AllocatedDevice("r", "gpu.com", "n1", "0"),)))
    pods = [claiming("a", "c", "c"), claiming("b", "template/t", "gone"), claiming("d", "template/none")]
    objects = claim("c", gpu_com=1), claim("unused", gpu_com=1), claim_template("t", gpu_com=1), idle
    ssn = opened(world(objects, pods, names="abd"))
    found = resolved_claims(ssn.tables)
    rows = {name: task(ssn, name).row for name in "abd"}
    assert [each.key for each in found.claims] == ["ns/idle", "ns/c", "ns/b/0"]
    assert found.of_task == {rows["a"]: (1,), rows["b"]: (2,), rows["d"]: ()}
    assert found.missing == {
        rows["b"]: "resourceclaim ns/gone not found",
        rows["d"]: "resourceclaim template ns/none not found",
    }
