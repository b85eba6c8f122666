"""What binds in flight assign to claims and pods.

A claim of devices or of a volume counts as assigned from the decision to bind a pod until an event shows it, or until
no
pod is left that was to be bound with it. The shared devices of a pod count until its own annotations name them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from pumice.model.decisions import CLAIMS, VOLUMES, Bind, VolumeGrant, device_grant
from pumice.model.devices.claims import Allocation, ResourceClaim
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.volumes import PersistentVolume, PersistentVolumeClaim

G = TypeVar("G")


@dataclass(slots=True)
class _Given(Generic[G]):
    """What was assigned to a claim, and for which pods."""

    what: G
    # Several pods may use one claim: the assignment holds until the last of them is gone. A dict, for its order.
    pods: dict[str, None] = field(default_factory=dict)
    #: UID of the pod for whose extended resources the claim is made, "" for other claims.
    for_pod: str = ""


class Grants:
    """The assignments of binds in flight, by claim. ``stale`` has the kinds whose tables they changed."""

    def __init__(self) -> None:
        self._devices: dict[str, _Given[Allocation]] = {}
        self._volumes: dict[str, _Given[VolumeGrant]] = {}
        self._cards: dict[str, DeviceGrant] = {}
        self.stale: dict[type[object], None] = {}

    def __bool__(self) -> bool:
        return bool(self._devices or self._volumes or self._cards)

    def assume(self, bind: Bind) -> None:
        """Add what a bind assigns to the pod and its claims."""
        for grant in _listed(bind, CLAIMS):
            # A claim is allocated once. Later pods that use it are added to the first assignment.
            if grant.allocation is not None and grant.claim not in self._devices:
                self._devices[grant.claim] = _Given(grant.allocation, for_pod=bind.uid if grant.extended else "")
                self.stale[ResourceClaim] = None
            if grant.claim in self._devices:
                self._devices[grant.claim].pods[bind.pod] = None
        for volume in _listed(bind, VOLUMES):
            self._volumes.setdefault(volume.claim, _Given(volume)).pods[bind.pod] = None
            self.stale[PersistentVolumeClaim] = self.stale[PersistentVolume] = None
        cards = device_grant(bind)
        if cards is not None:
            self._cards[bind.pod] = cards
            self.stale[DeviceGrant] = None

    def bound(self, pods: Iterable[str]) -> None:
        """Drop the shared devices of pods that were seen on their nodes."""
        # Annotations of devices are written with the binding, and labels of groups before it, so the event has them.
        for pod in pods if self._cards else ():
            if self._cards.pop(pod, None) is not None:
                self.stale[DeviceGrant] = None

    def let_go(self, pods: Iterable[str]) -> None:
        """Drop what was assigned for these pods alone: they are gone, have ended, or were not bound.

        A claim that has its assignment in its own status keeps it.
        """
        if self:
            for pod in pods:
                self.bound((pod,))
                if _without(self._devices, pod):
                    self.stale[ResourceClaim] = None
                if _without(self._volumes, pod):
                    self.stale[PersistentVolumeClaim] = self.stale[PersistentVolume] = None

    def over(self, kind: type[object], observed: Mapping[str, Any]) -> Iterable[Any]:
        """Return the objects of a kind with what binds in flight assign to them."""
        if kind is ResourceClaim and self._devices:
            return self._claims(observed)
        if kind is DeviceGrant:
            return self._cards.values()
        if kind in (PersistentVolume, PersistentVolumeClaim) and self._volumes:
            return self._with_volumes(observed)
        return observed.values()

    def _claims(self, observed: Mapping[str, ResourceClaim]) -> Iterator[ResourceClaim]:
        for key, claim in observed.items():
            given = self._devices.get(key)
            # What the claim says itself is newer than what was decided.
            yield claim if given is None or claim.allocation is not None else replace(claim, allocation=given.what)
        made_for = {claim.for_pod for claim in observed.values() if claim.for_pod and claim.allocation is not None}
        for key, given in self._devices.items():
            # A claim that is made for its pod, and was not seen yet. Its devices are taken already.
            if key not in observed and (not given.for_pod or given.for_pod not in made_for):
                namespace, _, name = key.partition("/")
                yield ResourceClaim(namespace, name, allocation=given.what, for_pod=given.for_pod)

    def _with_volumes(self, observed: Mapping[str, Any]) -> Iterator[Any]:
        given = {each.what.volume: each.what for each in self._volumes.values() if each.what.volume}
        for key, obj in observed.items():
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
    """Remove a pod from assignments. Return True if one of them was for this pod alone, and is dropped."""
    over = [key for key, each in given.items() if pod in each.pods and len(each.pods) == 1]
    # A claim may be shared: it is dropped only with the last pod for which it was assigned.
    for each in given.values():
        each.pods.pop(pod, None)
    for key in over:
        del given[key]
    return bool(over)
