"""The state of the API server as far as it was received: events for the next drain, and present objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from pumice.kube.writers.pending_writes import is_older
from pumice.kube.writers.refused_evictions import RefusedEvictions
from pumice.model.config_map import ConfigMap
from pumice.model.decisions import Decision, Evict
from pumice.model.events import Event, Gone, Object, Seen, Undone
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.config_maps import ConfigMapNames
from pumice.state.group_trees import GroupTrees


class InformerCache:
    """Callable from any thread. Reading an object by key needs no lock, because objects are frozen.

    It is ahead of the store, which applies events only between cycles. ``on_news``: called when the cache itself finds
    something that may change a decision. ``member_lost``: a hook, called with a PodGroup one of whose pods counts no
    longer for its minimum; it must not call the cache.
    """

    def __init__(self, on_news: Callable[[], None]) -> None:
        self._on_news = on_news
        self.member_lost: Callable[[str], None] = lambda _: None
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.queues: dict[str, Queue] = {}
        self.nodes: dict[str, Node] = {}
        self._kept: dict[type[Object], dict[str, Any]] = {
            Pod: self.pods,
            PodGroup: self.groups,
            Queue: self.queues,
            Node: self.nodes,
        }
        self._placed: dict[str, set[str]] = {}  # PodGroup -> its pods that hold nodes or have succeeded
        self._news: list[Event] = []
        self._trees = GroupTrees()
        self._config_maps = ConfigMapNames()
        self._refused_evictions = RefusedEvictions()
        self._lock = Lock()

    def apply(self, events: Iterable[Event]) -> None:
        """Apply events, oldest first. The caller decides whether they may change a decision."""
        with self._lock:
            for event in events:
                self._take_in_trees(event)

    def members_of(self, tree: str) -> tuple[CompositePodGroup | PodGroup, ...]:
        """Return the objects of the tree of a CompositePodGroup as the API has them, the root first, by the key of its
        PodGroup in ``groups``, or ()."""
        with self._lock:
            return self._trees.members_of(tree)

    def has_config_map(self, config_map: ConfigMap) -> bool:
        """Return True if a ConfigMap is known already."""
        with self._lock:
            return config_map in self._config_maps

    def give_back(self, decision: Decision) -> None:
        """Give back a decision that could not be carried out. A pod whose eviction failed is spared for a while."""
        with self._lock:
            self._news.append(Undone(decision.pod, decision.uid))
            known = self.pods.get(decision.pod)
            if isinstance(decision, Evict) and known is not None:
                self._refused_evictions.refused(decision.pod, decision.uid)
                self._take_in(Seen(known))
        self._on_news()

    def release_refused_evictions(self) -> None:
        """Release pods whose time of being spared is over."""
        with self._lock:
            pods = [self.pods[key] for key in self._refused_evictions.over() if key in self.pods]
            for pod in pods:
                self._take_in(Seen(pod))
        if pods:
            self._on_news()

    def apply_read(self, pod: Pod) -> None:
        """Apply a pod that was read by itself, unless a newer state, such as its end, is known."""
        with self._lock:
            known = self.pods.get(pod.key)
            if known is not None and known.uid == pod.uid and is_older(known.resource_version, pod.resource_version):
                self._take_in_trees(Seen(pod))
        self._on_news()

    def apply_end(self, key: str, uid: str) -> None:
        """Note that a pod was found to be gone, if it is still known."""
        with self._lock:
            known = self.pods.get(key)
            if known is not None and known.uid == uid:
                self._take_in_trees(Gone(Pod, key))
        self._on_news()

    def placed_of(self, group: str) -> frozenset[str]:
        """Return the keys of the pods of a PodGroup that count for its minimum: they are on nodes and stay, or have
        succeeded."""
        with self._lock:
            return frozenset(self._placed.get(group, ()))

    def drain(self) -> list[Event]:
        """Return all events since the last call, oldest first."""
        with self._lock:
            news, self._news = self._news, []
        return news

    def _place(self, key: str, pod: Pod | None) -> None:
        """Note whether a pod counts for the minimum of its PodGroup."""
        before = self.pods.get(key)
        if before is not None and before.node_name and (pod is None or pod.group_key != before.group_key):
            self._unplace(key, before.group_key)
        if pod is None or not pod.node_name:
            return
        if pod.phase == "Succeeded" or (pod.deletion is None and pod.phase != "Failed"):
            self._placed.setdefault(pod.group_key, set()).add(key)
        else:
            self._unplace(key, pod.group_key)

    def _unplace(self, key: str, group: str) -> None:
        placed = self._placed.get(group)
        if placed is not None and key in placed:
            placed.discard(key)
            if not placed:
                del self._placed[group]
            self.member_lost(group)

    def _take_in_trees(self, event: Event) -> None:
        """Apply an event of the API. What it says of a group in a tree becomes an event of the tree."""
        if isinstance(event, Undone):
            self._take_in(event)
            return
        for noted in self._config_maps.pass_on(event):
            for each in self._trees.pass_on(noted):
                self._take_in(each)

    def _take_in(self, event: Event) -> None:
        if isinstance(event, Seen) and isinstance(event.obj, Pod):
            event = Seen(self._refused_evictions.marked(event.obj))
        elif isinstance(event, Gone) and event.kind is Pod:
            self._refused_evictions.gone(event.key)
        self._keep(event)
        self._news.append(event)

    def _keep(self, event: Event) -> None:
        if isinstance(event, Seen) and isinstance(event.obj, Pod):
            self._place(event.obj.key, event.obj)
        elif isinstance(event, Gone) and event.kind is Pod:
            self._place(event.key, None)
        if isinstance(event, Seen):
            kept = self._kept.get(type(event.obj))
            if kept is not None:
                obj = event.obj
                kept[obj.key if isinstance(obj, Pod | PodGroup) else obj.name] = obj
        elif isinstance(event, Gone):
            kept = self._kept.get(event.kind)
            if kept is not None:
                kept.pop(event.key, None)
