"""Where nodes are near each other, as the API server says it: HyperNodes (Volcano), levels of labels (KAI)."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.pod import LabelSelector

TOP_HYPERNODE = "<cluster-top-hypernode>"


class HyperNodeMember(Struct, frozen=True):
    """One member entry. Exactly one selector is set; ``type`` is ``Node`` or ``HyperNode``."""

    type: str
    exact: str | None = None
    regex: str | None = None
    labels: LabelSelector | None = None


class HyperNode(Struct, frozen=True):
    """A set of nodes that are near to each other.

    ``unread``: what of it could not be read, and why. It is empty then.
    """

    name: str
    tier: int
    members: tuple[HyperNodeMember, ...] = ()
    tier_name: str = ""
    creation: float = 0.0
    resource_version: str = ""
    unread: tuple[str, ...] = ()


class Topology(Struct, frozen=True):
    """``levels``: node-label keys, from the widest to the narrowest. A node that lacks one of them is outside.

    ``unread``: what of it could not be read, and why. It has no levels then.
    """

    name: str
    levels: tuple[str, ...] = ()
    creation: float = 0.0
    resource_version: str = ""
    unread: tuple[str, ...] = ()
