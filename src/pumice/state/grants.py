"""What decisions in flight give to claims: a claim is taken for what the bind of a pod makes of it until it is seen so,
and until nobody is left who is to be bound on it. And to pods: which cards they got, until they say it themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from pumice.model.decisions import CLAIMS, DEVICES, VOLUMES, Bind, VolumeGrant
from pumice.model.devices.claims import Allocation, ResourceClaim
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.volumes import PersistentVolume, PersistentVolumeClaim

G = TypeVar("G")


@dataclass(slots=True)
class _Given(Generic[G]):
    """What a claim was given, and for which pods."""

    what: G
    pods: dict[str, None] = field(default_factory=dict)


class Grants:
    """By claim. ``stale``: kinds of which the objects look otherwise since somebody last asked."""

    def __init__(self) -> None:
        self._devices: dict[str, _Given[Allocation]] = {}
        self._volumes: dict[str, _Given[VolumeGrant]] = {}
        self._cards: dict[str, DeviceGrant] = {}
        self.stale: dict[type[object], None] = {}

    def __bool__(self) -> bool:
        return bool(self._devices or self._volumes or self._cards)

    def assume(self, bind: Bind) -> None:
        """A pod will be bound, and its claims say by then what they were given for that."""
        for grant in _listed(bind, CLAIMS):
            if grant.allocation is not None and grant.claim not in self._devices:
                self._devices[grant.claim] = _Given(grant.allocation)
                self.stale[ResourceClaim] = None
            if grant.claim in self._devices:
                self._devices[grant.claim].pods[bind.pod] = None
        for volume in _listed(bind, VOLUMES):
            self._volumes.setdefault(volume.claim, _Given(volume)).pods[bind.pod] = None
            self.stale[PersistentVolumeClaim] = self.stale[PersistentVolume] = None
        cards = bind.context.get(DEVICES)
        if isinstance(cards, DeviceGrant):
            self._cards[bind.pod] = cards
            self.stale[DeviceGrant] = None

    def said(self, pods: Iterable[str]) -> None:
        """Pods are seen on their nodes: they say themselves which cards they got, in the same write."""
        for pod in pods if self._cards else ():
            if self._cards.pop(pod, None) is not None:
                self.stale[DeviceGrant] = None

    def let_go(self, pods: Iterable[str]) -> None:
        """Pods are gone, have ended, or were not bound: what was given for them alone is free again, unless the claim
        says itself what it was given."""
        if self:
            for pod in pods:
                self.said((pod,))
                if _without(self._devices, pod):
                    self.stale[ResourceClaim] = None
                if _without(self._volumes, pod):
                    self.stale[PersistentVolumeClaim] = self.stale[PersistentVolume] = None

    def over(self, kind: type[object], known: Mapping[str, Any]) -> Iterable[Any]:
        """The objects of a kind with what was given to them."""
        if kind is ResourceClaim and self._devices:
            return self._claims(known)
        if kind is DeviceGrant:
            return self._cards.values()
        if kind in (PersistentVolume, PersistentVolumeClaim) and self._volumes:
            return self._with_volumes(known)
        return known.values()

    def _claims(self, known: Mapping[str, ResourceClaim]) -> Iterator[ResourceClaim]:
        for key, claim in known.items():
            given = self._devices.get(key)
            yield claim if given is None or claim.allocation is not None else replace(claim, allocation=given.what)
        for key, given in self._devices.items():
            if key not in known:  # it is made for its pod, and not seen yet
                namespace, _, name = key.partition("/")
                yield ResourceClaim(namespace, name, allocation=given.what)

    def _with_volumes(self, known: Mapping[str, Any]) -> Iterator[Any]:
        given = {each.what.volume: each.what for each in self._volumes.values() if each.what.volume}
        for key, obj in known.items():
            if isinstance(obj, PersistentVolume) and key in given and not obj.claim:
                yield replace(obj, claim=given[key].claim, claim_uid=given[key].uid)
            elif isinstance(obj, PersistentVolumeClaim) and key in self._volumes and not obj.bound:
                what = self._volumes[key].what
                yield replace(obj, volume=what.volume or obj.volume, node=what.node)
            else:
                yield obj


def _listed(bind: Bind, key: str) -> tuple[Any, ...]:
    found = bind.context.get(key, ())
    return found if isinstance(found, tuple) else ()


def _without(given: dict[str, _Given[Any]], pod: str) -> bool:
    """Take a pod out of what was given. Whether something is free for it."""
    over = [key for key, each in given.items() if pod in each.pods and len(each.pods) == 1]
    for each in given.values():
        each.pods.pop(pod, None)
    for key in over:
        del given[key]
    return bool(over)
