"""What is written where some of it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pumice.kube.api.errors import ApiError
from pumice.kube.controllers.writes import Writing
from pumice.runtime.controllers.writes import Create, Patch, Ref, Write

REF = Ref("batch.volcano.sh/v1alpha1", "Job", "ns", "j")


class Refusing:
    """A client that cannot create objects of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.written: list[str] = []

    async def post(self, path: str, obj: dict[str, Any]) -> None:
        if obj["kind"] == self.kind:
            raise ApiError(404, "NotFound", "the server could not find the requested resource", f"POST {path}")
        self.written.append(obj["kind"])

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        self.written.append(path.rpartition("/")[2])


def create(kind: str) -> Create:
    api = {"NetworkPolicy": "networking.k8s.io/v1"}.get(kind, "v1")
    return Create({"apiVersion": api, "kind": kind, "metadata": {"namespace": "ns", "name": "j"}})


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        pytest.param("NetworkPolicy", ["Service", "status"], id="a helper: the status is written"),
        pytest.param("Pod", ["Service", "NetworkPolicy"], id="a pod: what follows may rest on it"),
    ],
)
def test_a_helper_that_fails_does_not_stop_the_status(kind: str, written: list[str]) -> None:
    client, reports = Refusing(kind), list[object]()
    writing = Writing(client, lambda *said: reports.append(said))  # type: ignore[arg-type]
    creates = [create("Service"), create("NetworkPolicy"), *([create("Pod")] if kind == "Pod" else [])]
    writes: list[Write] = [*creates, Patch(REF, {"spec": {}}), Patch(REF, {"status": {}}, "status")]
    with pytest.raises(ApiError):
        asyncio.run(writing.carry_out(writes))
    assert client.written == written
