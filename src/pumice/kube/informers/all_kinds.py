"""Follow all kinds that a scheduler reads: one reflector each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast, get_args

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec, Object
from pumice.kube.api.kinds import FOLLOWED, Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.informers.reflector import Reflector, Sink, every, ignored
from pumice.kube.informers.shared_keys import SharedKeys
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.model import events
from pumice.model.manifest import Decoder
from pumice.runtime.memory import leave_old_objects_alone

#: Classes of objects in events, by name of the kind.
_TYPES: Mapping[str, type[events.Object]] = {value.__name__: value for value in get_args(events.Object)}
NOTHING_LEFT_OUT: Mapping[Kind, Callable[[Any], bool]] = MappingProxyType({})


class InformerSet:
    """Follows ``kinds``. ``sink``: called with events of those that events can carry, in the loop's thread, in batches.

    Events of a kind are in the server's order; between kinds there is no order. Kinds that no event carries are
    followed, too: see ``objects``. ``takes``, by kind: which objects count; others are ignored. ``on_unparsable``:
    called with objects that cannot be read.
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
        on_unparsable: Callable[[Kind, Unparsable], None] = ignored,
    ) -> None:
        decoder = decoder or Decoder()
        self._troubles = troubles or WatchFailures()
        sinks = _sinks(sink, kinds)
        self.reflectors = {
            kind: Reflector(
                client,
                kind,
                Codec(kind, decoder),
                sinks[kind],
                _TYPES.get(kind.kind),
                retry_policy,
                self._troubles,
                takes.get(kind, every),
                on_unparsable,
            )
            for kind in kinds
        }

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    async def answered(self) -> None:
        """Wait until the API server has begun to answer for every kind, or it is clear that it will not."""
        for reflector in self.reflectors.values():
            await reflector.answered.wait()

    async def synced(self) -> None:
        """Wait until every kind was listed once and ``sink`` got all of it: the barrier before the first cycle.

        An optional kind that is not installed, or that may not be read, is not waited for.
        """
        for reflector in self.reflectors.values():
            await reflector.synced.wait()
        leave_old_objects_alone(and_free_unused=True)

    def trouble(self) -> list[str]:
        """Return why kinds are not followed at present, a line each."""
        return self._troubles.texts()

    def unparsable(self) -> list[tuple[Kind, Unparsable]]:
        """Return the objects that cannot be read at present."""
        return [(kind, each) for kind, reflector in self.reflectors.items() for each in reflector.unparsable.current()]

    def counted(self) -> list[events.Object]:
        """Return the objects that events have, as last seen. Of several with one key that of the first kind counts."""
        found: dict[tuple[type, str], events.Object] = {}
        for kind, reflector in self.reflectors.items():
            if kind.kind in _TYPES:
                for key, each in reflector.known.items():
                    # The kinds of events are those of the model, whose objects are no dictionaries.
                    found.setdefault((type(each.value), key), cast(events.Object, each.value))
        return list(found.values())

    def objects(self, kind: Kind) -> Mapping[str, Object]:
        """Return the objects of a kind by ``namespace/name`` or name, as last seen."""
        return self.reflectors[kind].known


def _sinks(sink: Sink, kinds: Sequence[Kind]) -> dict[Kind, Sink]:
    """Return the sink of each kind: a shared one for kinds that events do not tell apart."""
    found: dict[Kind, Sink] = {}
    for name in dict.fromkeys(kind.kind for kind in kinds):
        equal = [kind for kind in kinds if kind.kind == name]
        shared = SharedKeys(sink, equal) if len(equal) > 1 else None
        found.update({kind: shared.sink_of(kind) if shared is not None else sink for kind in equal})
    return found
