"""Groups that cannot be taken as they are, on a server that schedules: nothing waits in silence."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.rows import SCHEDULERS, Obj, Row, cluster, message_of, rows_of
from tests.ecosystem.test_served import path_of
from tests.unit.apiserver.commands import PATIENCE_S, serving_command
from tests.unit.apiserver.test_serve_schedule import User, user_of

_UNSERVED = "a version that is not known"


async def messages_of(user: User, namespace: str, warnings: list[str]) -> str:
    """Return all that is said about the objects of a namespace: events, conditions and warnings on creation."""
    events = (await user.get(f"/api/v1/namespaces/{namespace}/events"))["items"]
    pods = (await user.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    conditions = [each for pod in pods for each in (pod.get("status") or {}).get("conditions") or ()]
    return "\n".join([*warnings, *(each.get("message", "") for each in (*events, *conditions))])


async def nodes_of(user: User, namespace: str) -> list[str]:
    """Return the node of each pod, "" for none."""
    pods = (await user.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    return [pod["spec"].get("nodeName", "") for pod in pods]


async def comes(user: User, namespace: str, row: Row, wanted: str, warnings: list[str]) -> None:
    """Wait until all is said and bound that a row wants."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        said, bound = await messages_of(user, namespace, warnings), sum(map(bool, await nodes_of(user, namespace)))
        assert bound <= row.bound or row.bound, f"{row.name}: a part of a gang was bound"
        if wanted in said.replace('\\"', '"') and bound == row.bound:
            return
        assert time.monotonic() < deadline, f"{row.name}: {bound} bound, and said is only: {said}"
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.1)


def placed(obj: Obj, namespace: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


@pytest.mark.parametrize("dialect", SCHEDULERS)
async def test_each_mistake_has_an_event_or_a_condition(tmp_path: Path, dialect: str) -> None:
    (tmp_path / "kai.conf").write_text("dialect: kai\n")
    listed: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": cluster(dialect)}
    (tmp_path / "cluster.json").write_text(json.dumps(listed))
    policy = ("--scheduler-conf", str(tmp_path / "kai.conf")) if dialect == "kai" else ()
    with serving_command(tmp_path, str(tmp_path / "cluster.json"), "--schedule", *policy) as served:
        async with user_of(served) as user:
            given: dict[str, list[str]] = {}
            for i, row in enumerate(rows_of(dialect)):
                await user.create("/api/v1/namespaces", {"metadata": {"name": f"ns{i}"}})
                warnings = given[f"ns{i}"] = []
                for obj in row.objects(dialect):
                    # A server refuses versions that it does not have; the pods are then without a group.
                    if row.name != _UNSERVED or obj["kind"] == "Pod":
                        warnings += await user.create(path_of(placed(obj, f"ns{i}")), placed(obj, f"ns{i}"))
            for i, row in enumerate(rows_of(dialect)):
                await comes(user, f"ns{i}", row, message_of(row, dialect, f"ns{i}"), given[f"ns{i}"])
                count = sum(each["kind"] == "Pod" for each in row.objects(dialect))
                assert len(await nodes_of(user, f"ns{i}")) == count, "no pod is lost"
