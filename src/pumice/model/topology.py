"""HyperNodes as the API server gives them; ``columns.hypernodes`` builds the tree from them."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.model.pod import LabelSelector

TOP_HYPERNODE = "<cluster-top-hypernode>"


@dataclass(frozen=True, slots=True)
class HyperNodeMember:
    """One member entry. Exactly one selector is set; ``type`` is ``Node`` or ``HyperNode``."""

    type: str
    exact: str | None = None
    regex: str | None = None
    labels: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class HyperNode:
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
