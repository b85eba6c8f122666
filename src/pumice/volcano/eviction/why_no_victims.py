"""What stood in the way of making room for a task, in numbers.

The finding is shared by all jobs that fail alike, so it names no pod and no job.
"""

from __future__ import annotations

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.model.blockers import Blocker, OutOfReach, Protected
from pumice.volcano.eviction.node_search import Victims


def why_no_victims(ssn: Session, victims: Victims, reachable: Bool, queue: str = "") -> Blocker:
    """Of a task for which no node was found. ``reachable`` (N,): nodes that filters leave to it. ``queue``: whose pods
    might have been evicted, empty for those of other queues."""
    nodes = reachable.nonzero()[0]
    if not len(nodes):
        return OutOfReach(len(reachable))
    census = victims.census(nodes)
    by = tuple((plugin, count, _which(ssn, plugin)) for plugin, count in census.spared if count)
    return Protected(queue, len(nodes), census.asked, census.named, by, census.enough)


def _which(ssn: Session, plugin: str) -> str:
    """Which pods a plugin does not let others evict, as far as it says."""
    return getattr(ssn.hooks.plugin(plugin), "spares", "")
