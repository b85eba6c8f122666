"""The changes after which a blocker no longer holds up a job.

They need no snapshot: a blocker holds the amounts of the moment at which it was made.
"""

from __future__ import annotations

from msgspec import Struct


class Amount(Struct, frozen=True):
    """So much of a resource, in the units of the core."""

    resource: str
    value: float


# A type for each kind of change and no text, so that a what-if answer can apply it to a copy of the cluster.
class Change(Struct, frozen=True):
    """What would have to change."""


class ChangeNodes(Change, frozen=True):
    """So many nodes refuse no longer, by this plugin; ``detail`` says what they lack."""

    plugin: str
    nodes: int
    detail: str


# One change for an end of pods and for a larger node: for the job both come to the same, and the user chooses.
class FreeRoom(Change, frozen=True):
    """So much more of a resource becomes free on one node, or within one domain, by an end of pods or by growth.
    ``where``: which one, empty for any."""

    resource: str
    amount: float
    where: str = ""


# Apart from ``FreeRoom``: where no node is large enough, no end of pods helps.
class AddNode(Change, frozen=True):
    """So many nodes are added, or one grows. ``room``: what each has at least, empty for as much as the pod asks for.
    ``labels``: those that it has to have, such as ``rack=r1``. ``hypernode``: of which it has to be a member."""

    room: tuple[Amount, ...]
    labels: tuple[str, ...] = ()
    hypernode: str = ""
    count: int = 1


class RemoveTaint(Change, frozen=True):
    """A taint is removed from one node, or the pod tolerates it. ``nodes``: of which, empty for any."""

    taint: str
    nodes: tuple[str, ...] = ()


class RequireLevel(Change, frozen=True):
    """The job requires the level of a topology that has this label, in place of the one that it requires."""

    label: str


class FreePort(Change, frozen=True):
    """A host port becomes free on one node, or the pod asks for another."""

    port: int
    protocol: str


# Of a class and not of a claim: equal pods whose claims have names of their own share what is said.
class OfferDevices(Change, frozen=True):
    """So many more devices of a class that the claims select are free on each of so many ``nodes`` that take the pods;
    0: anywhere on such nodes."""

    device_class: str
    count: int
    nodes: int = 0


class OfferVolume(Change, frozen=True):
    """So many more volumes of a storage class can be used on each of so many ``nodes`` that take the pods; 0: anywhere
    on such nodes. ``size``: what each has at least, in bytes."""

    storage_class: str
    size: float
    count: int = 1
    nodes: int = 0


class AttachMore(Change, frozen=True):
    """So many more volumes of a CSI driver can be attached to each of so many ``nodes`` that take the pods; 0: anywhere
    on such nodes."""

    driver: str
    count: int
    nodes: int = 0


class ClaimApart(Change, frozen=True):
    """Each pod of the job uses a claim of its own in place of one that they share. ``kind`` and ``name``: of that."""

    kind: str
    name: str


class RunPod(Change, frozen=True):
    """A pod with these labels runs."""

    selector: str


# By resource, because a queue may be short of one and have plenty of the others.
class RaiseLimit(Change, frozen=True):
    """The limit of a queue rises by so much."""

    queue: str
    kind: str
    resource: str
    amount: float


class OpenQueue(Change, frozen=True):
    queue: str


# Either of two changes. Which one is right depends on whether pods are missing or the minimum is too high.
class AddPods(Change, frozen=True):
    """So many more pods of the job are made, or its minimum falls by as many. ``role``: empty for pods of any."""

    role: str
    count: int


class RemoveGates(Change, frozen=True):
    gates: tuple[str, ...]


# A change like the others, so that a reader can tell "it will start" from "it is not known what helps".
class Wait(Change, frozen=True):
    """Nothing has to change: it is over by itself."""


# What is wrong is a text of a user, and no what-if can guess the right one.
class Correct(Change, frozen=True):
    """A field, or a plugin, is corrected."""

    what: str


class Create(Change, frozen=True):
    kind: str
    name: str


# Not an empty tuple of changes: a blocker without a lift has to say why, and readers print that.
class NotKnown(Change, frozen=True):
    """It is not known what would help, because."""

    because: str
