"""What would have to change for a blocker not to stand in the way of a job."""

from __future__ import annotations

from msgspec import Struct


class Change(Struct, frozen=True):
    """What would have to change."""


class ChangeNodes(Change, frozen=True):
    """So many nodes refuse no longer, by this plugin; ``detail`` says what they lack."""

    plugin: str
    nodes: int
    detail: str


class FreeRoom(Change, frozen=True):
    """So much more of a resource becomes free on one node, or within one domain."""

    resource: str
    amount: float


class RaiseLimit(Change, frozen=True):
    """The limit of a queue rises by so much; ``amount`` 0: by how much is not known."""

    queue: str
    kind: str
    resource: str
    amount: float


class OpenQueue(Change, frozen=True):
    queue: str


class AddPods(Change, frozen=True):
    """So many more pods of the job are made, or its minimum falls by as many. ``role``: empty for pods of any."""

    role: str
    count: int


class RemoveGates(Change, frozen=True):
    gates: tuple[str, ...]


class Wait(Change, frozen=True):
    """Nothing: it is over by itself. ``until``: seconds since the epoch, None where that is not known."""

    until: float | None = None


class Correct(Change, frozen=True):
    """A field, or a plugin, is corrected."""

    what: str


class Create(Change, frozen=True):
    kind: str
    name: str


class NotKnown(Change, frozen=True):
    """It is not known what would help, because."""

    because: str
