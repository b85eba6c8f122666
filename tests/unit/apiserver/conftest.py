"""A server on loopback, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from pumice.apiserver.api.http import Api, Limits
from pumice.apiserver.api.server import serving
from pumice.apiserver.cluster import Cluster
from pumice.runtime.serving.listening import Place
from tests.unit.apiserver.worlds import cluster

Client = aiohttp.ClientSession


@pytest.fixture
def world() -> Cluster:
    return cluster()


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def token() -> str:
    return ""


@pytest.fixture
async def client(world: Cluster, limits: Limits, token: str) -> AsyncIterator[Client]:
    async with serving(Api(world, token, limits), Place()) as url, Client(url) as opened:
        yield opened
