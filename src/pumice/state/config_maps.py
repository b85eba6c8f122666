"""Note on pods which of the ConfigMaps that they need do not exist, while objects come and go.

Source: KAI, whose predicate keeps such pods waiting. Volcano does not look for ConfigMaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from pumice.model.config_map import ConfigMap
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod


# Outside of the store: as a table there, each pod's ConfigMaps would have to be part of its class, and jobs that differ
# in nothing but the names of their ConfigMaps would share no answers.
class ConfigMapNames:
    """The ConfigMaps of one cluster, and the pods that need some. Not thread-safe.

    In a namespace without any ConfigMap none is looked for: a cluster has one in each, and files often leave them out.
    """

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}  # namespace -> names, in a dict as a set
        self._pods: dict[str, dict[str, Pod]] = {}  # namespace -> its pods that need ConfigMaps, as passed on, by key

    def __contains__(self, config_map: ConfigMap) -> bool:
        return config_map.name in self._names.get(config_map.namespace, ())

    def pass_on(self, event: Seen | Gone) -> Iterator[Seen | Gone]:
        """Yield what an event of the API means for those who know no ConfigMaps."""
        match event:
            case Seen(Pod() as pod):
                yield Seen(self._pod_seen(pod))
            case Gone(kind, key) if kind is Pod:
                self._forget(key.partition("/")[0], key)
                yield event
            case Seen(ConfigMap() as config_map):
                # Controllers rewrite the contents of some all the time.
                if config_map not in self:
                    self._names.setdefault(config_map.namespace, {})[config_map.name] = None
                    yield from self._pods_again(config_map.namespace)
            case Gone(kind, key) if kind is ConfigMap:
                namespace, _, name = key.partition("/")
                if self._names.get(namespace, {}).pop(name, "") is None:
                    yield from self._pods_again(namespace)
            case _:
                yield event

    def _pod_seen(self, pod: Pod) -> Pod:
        if not pod.config_maps:
            # Usually it has been bound.
            self._forget(pod.namespace, pod.key)
            return pod
        noted = self._noted(pod)
        self._pods.setdefault(pod.namespace, {})[pod.key] = noted
        return noted

    def _forget(self, namespace: str, key: str) -> None:
        """Keep nothing of a pod that needs no ConfigMap any more: tenants create pods and namespaces without end."""
        pods = self._pods.get(namespace)
        if pods is not None:
            pods.pop(key, None)
            if not pods:
                del self._pods[namespace]

    def _pods_again(self, namespace: str) -> Iterator[Seen]:
        """Yield the pods of a namespace that lack other ConfigMaps than before."""
        for key, pod in sorted(self._pods.get(namespace, {}).items()):
            noted = self._noted(pod)
            # Most ConfigMaps of a namespace are needed by few of its pods.
            if noted != pod:
                self._pods[namespace][key] = noted
                yield Seen(noted)

    def _noted(self, pod: Pod) -> Pod:
        names = self._names.get(pod.namespace)
        missing = tuple(name for name in pod.config_maps if name not in names) if names else ()
        if missing == pod.spec.missing_config_maps:
            return pod
        return replace(pod, spec=replace(pod.spec, missing_config_maps=missing))


def with_config_maps(objects: Iterable[Any]) -> list[Any]:
    """Return objects without ConfigMaps, with a note on each pod of those that it lacks."""
    listed, names = list(objects), ConfigMapNames()
    found = [each for each in listed if isinstance(each, ConfigMap)]
    # Most inputs have none, and keep the list as it is.
    if not found:
        return listed
    # All ConfigMaps first: with the names alone, no pod is passed on twice.
    for each in found:
        assert not list(names.pass_on(Seen(each))), "pods come later"
    others = (each for each in listed if not isinstance(each, ConfigMap))
    return [event.obj for each in others for event in names.pass_on(Seen(each)) if isinstance(event, Seen)]
