"""A kind that the server has only in versions that are not read: the page for readiness says so."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import NATIVE_POD_GROUPS, Kind
from pumice.kube.api.retry_policy import RetryDelays, RetryPolicy
from pumice.kube.informers.reflector import Reflector
from pumice.kube.informers.watch_failures import WatchFailures


class Server:
    """A server that has PodGroups in these versions of the API group. ``with_others``: versions of other kinds."""

    def __init__(self, versions: list[str], with_others: list[str]) -> None:
        self.has, self._with_others = versions, with_others

    async def versions(self, group: str) -> list[str]:
        return [*self.has, *self._with_others]

    async def served(self, kind: Kind, subresource: str = "") -> bool:
        return kind.version in self.has


async def trouble_with(server: Server) -> list[str]:
    """Return what the page says once the kind was looked for, and until it appears."""
    troubles = WatchFailures()
    following = Reflector(
        cast(Client, server), NATIVE_POD_GROUPS, cast(Codec, None), lambda events: None, None, None, troubles
    )
    policy = replace(RetryPolicy(), missing_s=0.01)
    waiting = asyncio.create_task(following._wait_until_served(0.01, RetryDelays(policy)))
    await asyncio.wait_for(following.synced.wait(), 60)
    found = troubles.texts()
    server.has = ["v1"]
    await asyncio.wait_for(cast(Any, waiting), 60)
    assert not troubles.texts(), "it is followed now"
    return found


@pytest.mark.parametrize(
    ("versions", "with_others", "said"),
    [
        pytest.param(
            ["v2"],
            ["v1"],
            "podgroups.scheduling.k8s.io is served in v2 only, and read in v1, v1beta1, v1alpha3, v1alpha2:"
            " Kubernetes' own gangs is off",
            id="an unknown version",
        ),
        pytest.param([], ["v1"], "", id="not installed"),
    ],
)
async def test_versions_that_are_not_read(versions: list[str], with_others: list[str], said: str) -> None:
    assert await trouble_with(Server(versions, with_others)) == ([said] if said else [])
