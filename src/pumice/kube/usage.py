"""What the API server knows of how busy nodes are, asked through the client that everything else goes through."""

from __future__ import annotations

from typing import Any

from pumice.kube.client import Client
from pumice.kube.errors import KubeError
from pumice.runtime.usage.asking import ANSWER_BYTES_MAX, ANSWER_S, SourceError


class ApiServerAsk:
    """A question to the API server, which must be one that nothing hangs on: it is asked once. Answers are bounded in
    size by the client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, path: str, body: Any = None) -> bytes:
        """The answer to a GET. Raises: SourceError."""
        try:
            answer = await self._client.request("GET", path, body, timeout_s=ANSWER_S)
        except KubeError as error:
            raise SourceError(str(error)[:200]) from None
        if len(answer) > ANSWER_BYTES_MAX:
            raise SourceError(f"answered more than {ANSWER_BYTES_MAX:,} bytes")
        return answer
