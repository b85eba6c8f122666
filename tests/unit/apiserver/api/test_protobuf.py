"""Bodies in protobuf: written here by hand, read as objects."""

from __future__ import annotations

import pytest

from pumice.apiserver.api.protobuf import decoded
from pumice.apiserver.refusals import Refusal


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + field(3, "") + field(4, "")


META = field(1, field(1, "x") + field(2, "") + field(11, field(1, "a") + field(2, "b")) + field(14, "f"))


def test_objects() -> None:
    found = decoded(body("v1", "ConfigMap", META + field(2, field(1, "k") + field(2, "v")) + field(4, 0)))
    assert found == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["f"]},
        "data": {"k": "v"},
        "immutable": False,
    }


def test_secrets_are_base64() -> None:
    assert decoded(body("v1", "Secret", field(2, field(1, "k") + field(2, b"\xff"))))["data"] == {"k": "/w=="}


@pytest.mark.parametrize(
    ("raw", "amount"),
    [
        pytest.param(field(1, 0) + field(2, 2) + field(3, ""), 2, id="number"),
        pytest.param(field(1, 1) + field(2, 0) + field(3, "50%"), "50%", id="text"),
    ],
)
def test_numbers_or_texts(raw: bytes, amount: object) -> None:
    found = decoded(body("policy/v1", "PodDisruptionBudget", field(2, field(1, raw))))
    assert found["spec"]["minAvailable"] == amount


def test_negative_numbers_and_times() -> None:
    assert decoded(body("scheduling.k8s.io/v1", "PriorityClass", field(2, -5)))["value"] == -5
    lease = decoded(
        body("coordination.k8s.io/v1", "Lease", field(2, field(4, field(1, 1_800_000_000) + field(2, 5000))))
    )
    assert lease["spec"] == {"renewTime": "2027-01-15T08:00:00.000005Z"}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param(b"{}", 400, id="JSON"),
        pytest.param(b"k8s\x00" + b"\xff" * 20, 400, id="a number without end"),
        pytest.param(b"k8s\x00" + b"\x0a\x7fabc", 400, id="cut off"),
        pytest.param(b"k8s\x00" + b"\x0b", 400, id="a wire type that is not used"),
        pytest.param(body("v1", "ConfigMap", field(1, 7)), 400, id="a number for a message"),
        pytest.param(body("v1", "ConfigMap", field(1, field(1, b"\xff"))), 400, id="no UTF-8"),
        pytest.param(body("apps/v1", "StatefulSet", b""), 415, id="a kind that is not read"),
        pytest.param(b"k8s\x00", 415, id="no kind"),
    ],
)
def test_what_cannot_be_read(raw: bytes, code: int) -> None:
    with pytest.raises(Refusal) as refused:
        decoded(raw)
    assert refused.value.code == code


def test_the_pods_of_a_deployment_are_read_whole_or_not_at_all() -> None:
    container = field(1, "c") + field(2, "i:1") + field(8, field(2, field(1, "cpu") + field(2, field(1, "2"))))
    template = field(1, field(1, "")) + field(2, field(2, container))
    spec = field(1, 3) + field(2, field(1, field(1, "app") + field(2, "x"))) + field(3, template)
    found = decoded(body("apps/v1", "Deployment", META + field(2, spec)))["spec"]
    assert found["replicas"] == 3 and found["selector"] == {"matchLabels": {"app": "x"}}
    assert found["template"]["spec"]["containers"] == [
        {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "2"}}}
    ]
    affinity = field(3, field(2, field(2, container) + field(18, field(1, "x"))))
    with pytest.raises(Refusal, match=r"with field 18 of PodSpec', wanted application/json"):
        decoded(body("apps/v1", "Deployment", field(2, affinity)))
