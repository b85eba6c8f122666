"""A reflector at work, and a mirror built from nothing but its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import PODS, Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.informers.reflector import Reflector
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod

FAST = RetryPolicy(first_s=0.02, unreachable_last_s=0.2, soon_s=0.0, last_s=0.2, missing_s=0.1, believed_s=0.0)


class Mirror:
    """What a client that only receives the events believes."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.objects: dict[str, Object] = {}

    def take(self, events: list[Event]) -> None:
        self.events += events
        for event in events:
            match event:
                case Seen(obj):
                    namespace = getattr(obj, "namespace", "")
                    self.objects[f"{namespace}/{obj.name}" if namespace else obj.name] = obj
                case Gone(_, key):
                    del self.objects[key]  # nothing goes twice, and nothing that was never seen

    def names(self, namespace: str = "") -> set[str]:
        return {o.name for o in self.objects.values() if getattr(o, "namespace", "") == namespace}


@asynccontextmanager
async def reflecting(
    client: Client,
    kind: Kind = PODS,
    value: type[Object] = Pod,
    retry_policy: RetryPolicy = FAST,
    streaming: bool = True,
) -> AsyncIterator[tuple[Reflector, Mirror]]:
    mirror = Mirror()
    reflector = Reflector(client, kind, Codec(kind, Decoder()), mirror.take, value, retry_policy)
    reflector.streaming = streaming
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector, mirror
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
