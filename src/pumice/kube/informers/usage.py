"""Measurements of nodes and queues for a running scheduler. The API server is asked through the common client."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pumice.framework.plugin.policy_file import Policy
from pumice.kube.api.client import Client
from pumice.kube.api.errors import KubeError
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.runtime.usage.asking import ANSWER_BYTES_MAX, ANSWER_S
from pumice.runtime.usage.feed import UsageFeed, of_nodes, of_queues
from pumice.runtime.usage.history_settings import HISTORY
from pumice.runtime.usage.sources import SourceError


class ApiServerAsk:
    """Asks the API server a question that is not vital: once. The client bounds the size of answers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, path: str, body: Any = None) -> bytes:
        """Return the answer to a GET. Raises: SourceError."""
        try:
            answer = await self._client.request("GET", path, body, timeout_s=ANSWER_S)
        except KubeError as error:
            raise SourceError(str(error)[:200]) from None
        if len(answer) > ANSWER_BYTES_MAX:
            raise SourceError(f"answered more than {ANSWER_BYTES_MAX:,} bytes")
        return answer


def usage_feeds(
    policy: Callable[[], Policy],
    cluster: KubeCluster,
    client: Client,
    timed: Callable[[float], None],
    environ: Mapping[str, str] = os.environ,
) -> Sequence[UsageFeed]:
    """Return the feeds that the current policy may need, which may name variables of ``environ``. ``timed``: called
    with the seconds that a request for the history of queues took."""
    cache, api_server = cluster.cache, ApiServerAsk(client)
    nodes, queues = of_nodes(lambda: policy().metrics), of_queues(lambda: policy().section(HISTORY), environ)
    return (
        UsageFeed(nodes, lambda: list(cache.nodes.values()), cluster.sink, time.time, of_api_server=api_server),
        UsageFeed(queues, lambda: list(cache.queues.values()), cluster.sink, time.time, timed=timed),
    )
