"""Every kind that a scheduler reads, followed at once: one reflector each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec, Object
from pumice.kube.api.kinds import FOLLOWED, Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.informers.reflector import Reflector, Sink, every, nobody
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.model import events
from pumice.model.manifest import Decoder
from pumice.runtime.memory import leave_old_objects_alone

#: What events carry, by the name of the kind.
_TOLD: Mapping[str, type[events.Object]] = {value.__name__: value for value in get_args(events.Object)}
NOTHING_LEFT_OUT: Mapping[Kind, Callable[[Any], bool]] = MappingProxyType({})


class InformerSet:
    """Keeps in step with ``kinds``. ``sink`` hears of those that events carry, in the loop's thread, a batch at a time.

    It hears of a kind in the server's order; between kinds there is none. Kinds that no event carries are followed all
    the same: see ``objects``. ``takes``, by kind, says which objects count; the others are as if they were not there.
    ``told`` hears of objects that cannot be read.
    """

    def __init__(
        self,
        client: Client,
        sink: Sink,
        *,
        decoder: Decoder | None = None,
        kinds: Sequence[Kind] = FOLLOWED,
        retry_policy: RetryPolicy | None = None,
        troubles: WatchFailures | None = None,
        takes: Mapping[Kind, Callable[[Any], bool]] = NOTHING_LEFT_OUT,
        told: Callable[[Kind, Unparsable], None] = nobody,
    ) -> None:
        decoder = decoder or Decoder()
        self._troubles = troubles or WatchFailures()
        self.reflectors = {
            kind: Reflector(
                client,
                kind,
                Codec(kind, decoder),
                sink,
                _TOLD.get(kind.kind),
                retry_policy,
                self._troubles,
                takes.get(kind, every),
                told,
            )
            for kind in kinds
        }

    async def run(self) -> None:
        """For ever, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    async def answered(self) -> None:
        """The API server has begun to answer for every kind, or it is clear that there is nothing to wait for."""
        for reflector in self.reflectors.values():
            await reflector.answered.wait()

    async def synced(self) -> None:
        """The barrier before the first cycle: every kind was listed once and ``sink`` heard all of it.

        A kind that is not installed, or that there is no right to read, is not waited for, unless there is nothing to
        schedule without it.
        """
        for reflector in self.reflectors.values():
            await reflector.synced.wait()
        leave_old_objects_alone()

    def trouble(self) -> list[str]:
        """Why something is not followed just now, a line each; empty when all is well."""
        return self._troubles.texts()

    def unread(self) -> list[tuple[Kind, Unparsable]]:
        """The objects that cannot be read just now."""
        return [(kind, each) for kind, reflector in self.reflectors.items() for each in reflector.unread.standing()]

    def objects(self, kind: Kind) -> Mapping[str, Object]:
        """What the server has of a kind, by ``namespace/name`` or name, as last heard."""
        return self.reflectors[kind].known
