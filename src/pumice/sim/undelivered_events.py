"""Events of the cluster that have not been drained yet.

As with a watch of an API server, only the newest state of an object is kept, and events of one object keep their order.
A fault may delay an event of an object (``delay``); then all later events of the object wait behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from pumice.model.decisions import Decision
from pumice.model.events import Event, Gone, News, Object, PodsGone, PodsSeen, Seen, Undone, key_of
from pumice.model.pod import Pod
from pumice.sim.engine import Engine, Priority

#: Returns by how many seconds an event is delayed, 0 for none.
Delay = Callable[[Event], float]


#: Objects of one kind in one event, by key. None: the object is gone, and so are all others of the part.
Part = dict[str, Any]


class UndeliveredEvents:
    """A buffer of events with the newest state of each object. ``has_news``: one of them may change a decision."""

    def __init__(self, engine: Engine) -> None:
        self.has_news = False
        self.delay: Delay | None = None
        self._engine = engine
        self._parts: list[tuple[type[Object] | None, Part]] = []
        self._newest: dict[type[Object], dict[str, Part]] = {}  # by key: the part that has its newest state
        self._held: dict[tuple[type[Object], str], list[tuple[Event, bool]]] = {}

    def add(self, obj: Object, key: str, news: bool = True) -> None:
        """An object exists, new or changed. ``news`` False: an echo of what the scheduler itself wrote."""
        self.add_all(type(obj), {key: obj}, news)

    def add_all(self, kind: type[Object], objects: Mapping[str, Object], news: bool = True) -> None:
        """Objects of one kind exist, by key, in this order."""
        if self.delay is None and not self._held:
            self._seen(kind, objects, news)
            return
        for key, obj in objects.items():
            if not self._comes_late(Seen(obj), kind, key, news):
                self._seen(kind, {key: obj}, news)

    def add_gone(self, kind: type[Object], keys: Collection[str]) -> None:
        """Objects of one kind no longer exist."""
        if self.delay is None and not self._held:
            self._gone(kind, keys)
            return
        for key in keys:
            if not self._comes_late(Gone(kind, key), kind, key, news=True):
                self._gone(kind, (key,))

    def add_undone(self, decision: Decision) -> None:
        """A decision that was accepted could not be carried out."""
        self._parts.append((None, {decision.pod: Undone(decision.pod, decision.uid)}))
        self.has_news = True

    def drain(self) -> list[News]:
        """Return all events since the last call, oldest first."""
        news: list[News] = []
        for kind, part in self._parts:
            news += _news_of(kind, part) if part else ()
        self._parts, self._newest, self.has_news = [], {}, False
        return news

    def owes(self, kind: type[Object], key: str) -> bool:
        """Return True if an event of the object has not been drained."""
        return (kind, key) in self._held or key in self._newest.get(kind, ())

    def held_pods(self) -> dict[str, Pod]:
        """Return the pods with delayed events, by key, in the state of the first of these."""
        firsts = (waiting[0][0] for waiting in self._held.values())
        pods = (event.obj for event in firsts if isinstance(event, Seen))
        return {pod.key: pod for pod in pods if isinstance(pod, Pod)}

    def begin_anew(self, objects: Iterable[Object]) -> None:
        """Drop all events and send these objects without delay: a new listener starts with a list."""
        self.drain()
        self._held.clear()
        for obj in objects:
            self._seen(type(obj), {key_of(obj): obj}, news=True)

    def _comes_late(self, event: Event, kind: type[Object], key: str, news: bool) -> bool:
        """Return True if the event is delayed: by a fault, or behind delayed events of its object."""
        waiting = self._held.get((kind, key))
        if waiting is not None:
            waiting.append((event, news))
            return True
        late_by = self.delay(event) if self.delay is not None else 0.0
        if late_by > 0:
            self._held[kind, key] = [(event, news)]
            self._engine.after(late_by, self._release, kind, key, priority=Priority.DELIVER)
        return late_by > 0

    def _release(self, kind: type[Object], key: str) -> None:
        for event, news in self._held.pop((kind, key), ()):
            if isinstance(event, Seen):
                self._seen(kind, {key: event.obj}, news)
            else:
                self._gone(kind, (key,))

    def _seen(self, kind: type[Object], objects: Mapping[str, Object], news: bool) -> None:
        newest = self._newest.setdefault(kind, {})
        for key in objects if newest else ():
            older = newest.get(key)
            if older is not None:
                del older[key]
        part: Part = dict(objects)
        newest.update(dict.fromkeys(part, part))
        self._parts.append((kind, part))
        self.has_news = self.has_news or news

    def _gone(self, kind: type[Object], keys: Iterable[str]) -> None:
        """Record removals. Earlier events of such an object stay, because it did exist."""
        newest = self._newest.get(kind, {})
        for key in keys if newest else ():
            newest.pop(key, None)
        self._parts.append((kind, dict.fromkeys(keys)))
        self.has_news = True


def _news_of(kind: type[Object] | None, part: Part) -> Iterable[News]:
    """Return the events of a part that is not empty: one for all pods, one per object for other kinds.
    ``kind`` None: they are events already."""
    if kind is None:
        return part.values()
    gone = next(iter(part.values())) is None
    if kind is Pod:
        return (PodsGone(tuple(part)) if gone else PodsSeen(part),)
    return [Gone(kind, key) if gone else Seen(obj) for key, obj in part.items()]
