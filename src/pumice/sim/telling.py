"""What the cluster has to tell and has not been asked for yet.

As with a watch of an API server, only the newest state of an object is kept, and what happened to one object is told in
order. A fault may hold an object's news back (``delay``); then all that happens to the object waits behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count

from pumice.model.events import Event, Object, Seen
from pumice.model.pod import Pod
from pumice.sim.engine import Engine, Priority

#: Seconds by which an event is told late; 0 is at once.
Delay = Callable[[Event], float]


def key_of(obj: Object) -> str:
    """``namespace/name``, or the name of a cluster-wide object."""
    return str(getattr(obj, "key", obj.name))


class Telling:
    """A buffer of events, newest state an object. ``has_news`` says whether one of them may change a decision."""

    def __init__(self, engine: Engine) -> None:
        self.has_news = False
        self.delay: Delay | None = None
        self._engine = engine
        self._events: list[Event | None] = []
        self._seen_at: dict[type[Object], dict[str, int]] = {}
        self._held: dict[tuple[type[Object], str], list[tuple[Event, bool]]] = {}

    def tell(self, event: Event, kind: type[Object], key: str, news: bool = True) -> None:
        """Add an event about the object. ``news`` False: an echo of what the scheduler itself wrote."""
        if self.delay is None and not self._held:
            self._add((event,), kind, (key,), news)
            return
        waiting = self._held.get((kind, key))
        if waiting is not None:
            waiting.append((event, news))
            return
        late_by = self.delay(event) if self.delay is not None else 0.0
        if late_by > 0:
            self._held[kind, key] = [(event, news)]
            self._engine.after(late_by, self._release, kind, key, priority=Priority.TELL)
        else:
            self._add((event,), kind, (key,), news)

    def tell_all(self, events: Sequence[Event], kind: type[Object], keys: Collection[str], news: bool = True) -> None:
        """Add an event about each of several objects, in this order: all are there, or all are gone."""
        if self.delay is None and not self._held:
            self._add(events, kind, keys, news)
            return
        for event, key in zip(events, keys, strict=True):
            self.tell(event, kind, key, news)

    def drain(self) -> list[Event]:
        """All events since the last call, oldest first."""
        events = [event for event in self._events if event is not None]
        self._events, self._seen_at, self.has_news = [], {}, False
        return events

    def owes(self, kind: type[Object], key: str) -> bool:
        """Whether there is something about the object that was not drained yet."""
        return (kind, key) in self._held or key in self._seen_at.get(kind, ())

    def held_pods(self) -> dict[str, Pod]:
        """By key, the pods of which news is held back, in the state that was to be told first."""
        firsts = (waiting[0][0] for waiting in self._held.values())
        pods = (event.obj for event in firsts if isinstance(event, Seen))
        return {pod.key: pod for pod in pods if isinstance(pod, Pod)}

    def begin_anew(self, objects: Iterable[Object]) -> None:
        """Drop all that is still to be told and tell these, none of them late: a new listener starts from a list."""
        self.drain()
        self._held.clear()
        for obj in objects:
            self._add((Seen(obj),), type(obj), (key_of(obj),), news=True)

    def _release(self, kind: type[Object], key: str) -> None:
        for event, news in self._held.pop((kind, key), ()):
            self._add((event,), kind, (key,), news)

    def _add(self, events: Sequence[Event], kind: type[Object], keys: Collection[str], news: bool) -> None:
        """Events about other objects each, all of one sort."""
        places = self._seen_at.get(kind)
        if places is None:
            places = self._seen_at[kind] = {}
        seen = isinstance(events[0], Seen)
        for key in keys if places else ():
            older = places.pop(key, None)
            if older is not None and seen:
                self._events[older] = None
        if seen:
            places.update(zip(keys, count(len(self._events)), strict=False))
        self._events += events
        self.has_news = self.has_news or news
