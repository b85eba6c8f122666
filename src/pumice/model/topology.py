"""Topology of nodes as the API server describes it: HyperNodes (Volcano) and levels of labels (KAI)."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.pod import LabelSelector

# Not a valid name in Kubernetes, so no object can collide with it.
TOP_HYPERNODE = "<cluster-top-hypernode>"


class HyperNodeMember(Struct, frozen=True):
    """A member entry. Exactly one selector is set. ``type``: ``Node`` or ``HyperNode``."""

    type: str
    exact: str | None = None
    regex: str | None = None
    labels: LabelSelector | None = None


class HyperNode(Struct, frozen=True):
    """A set of nodes near each other. ``unparsable``: fields that could not be read, and why; then the set is empty."""

    name: str
    tier: int
    # Unresolved, because members may select nodes by pattern; the tree is built from all hypernodes together.
    members: tuple[HyperNodeMember, ...] = ()
    tier_name: str = ""
    creation: float = 0.0
    resource_version: str = ""
    unparsable: tuple[str, ...] = ()


class Topology(Struct, frozen=True):
    """Levels of topology. ``levels``: keys of node labels, the widest first. A node that lacks one is outside.

    ``aliases``: another name for each level, "" for none; an empty tuple if no level has one. ``unparsable``: fields
    that could not be read, and why; then there are no levels.
    """

    name: str
    levels: tuple[str, ...] = ()
    creation: float = 0.0
    resource_version: str = ""
    unparsable: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def label(self, level: str) -> str:
        """Return the node label of a level that is named by its alias, and any other name unchanged."""
        return self.levels[self.aliases.index(level)] if level and level in self.aliases else level
