"""Gangs that have running pods evicted on a real server, and a scheduler that is killed in the middle of it."""

from __future__ import annotations

from pathlib import Path

from bench.kube_preempt import Size, preempted
from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from tests.kube.server import ApiServer


async def test_nobody_is_evicted_in_vain_or_twice_when_the_scheduler_dies(
    assets_server: ApiServer, tmp_path: Path
) -> None:
    server, size = assets_server, Size(nodes=12, running=10, gangs=3, size=3)
    async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
        found = await preempted(client, server, tmp_path, size)
    assert found["evicted"] == found["bound"] == size.wanted
    assert found["evicted_or_bound_twice"] == 0
    assert found["fullest_node"] == 1
