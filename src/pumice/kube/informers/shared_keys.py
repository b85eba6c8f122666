"""Kinds of several APIs whose objects have the same keys, such as PodGroups: one stream of events for all of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from pumice.kube.api.kinds import Kind
from pumice.kube.informers.reflector import Sink
from pumice.model.events import Event, Gone, Object, Seen

_log = logging.getLogger("pumice.kube")


class SharedKeys:
    """Emits events of ``kinds`` as if they were one kind. Where several have an object of one key, that of the kind
    which is first in the list counts, and the others come back when it is deleted."""

    def __init__(self, sink: Sink, kinds: Sequence[Kind]) -> None:
        self._sink, self._kinds = sink, tuple(kinds)
        self._held: dict[str, dict[int, Object]] = {}  # key -> rank of the kind -> object

    def sink_of(self, kind: Kind) -> Sink:
        """Return the sink for events of one of the kinds."""
        return partial(self._take, self._kinds.index(kind))

    def _take(self, rank: int, events: list[Event]) -> None:
        self._sink([meant for event in events for meant in self._meaning_for_all(rank, event)])

    def _meaning_for_all(self, rank: int, event: Event) -> list[Event]:
        """Return what the event of one kind means for all."""
        match event:
            case Seen(obj):
                key: str = obj.key  # type: ignore[union-attr]  # objects of these kinds are in namespaces
                held = self._held.setdefault(key, {})
                if held and rank not in held:
                    self._warn(key, {rank, *held})
                held[rank] = obj
                return [event] if rank == min(held) else []
            case Gone(_, key):
                held = self._held.get(key, {})
                counted = bool(held) and rank == min(held)
                held.pop(rank, None)
                if not held:
                    self._held.pop(key, None)
                    return [event]
                return [Seen(held[min(held)])] if counted else []
        return [event]

    def _warn(self, key: str, ranks: set[int]) -> None:
        first, *others = (self._kinds[rank].full_name for rank in sorted(ranks))
        _log.warning("%s is there as %s and as %s: the first counts", key, first, " and ".join(others))
