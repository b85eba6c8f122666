"""Explain in numbers why no room could be made for a task.

The finding is shared by all jobs that fail in the same way, so it names no pod and no job.
"""

from __future__ import annotations

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.model.blockers import Blocker, OutOfReach, Protected, TooSmall
from pumice.volcano.eviction.node_search import Victims

# Shown in one sentence, and a cluster may have hundreds of gangs that need their pods.
_NAMES_SHOWN = 3


def why_no_victims(ssn: Session, victims: Victims, reachable: Bool, queue: str = "") -> Blocker:
    """Return the reason for a task for which no node was found.

    ``reachable`` (N,): nodes that filters accept. ``queue``: the queue whose pods might have been evicted, empty for
    other queues.
    """
    nodes = reachable.nonzero()[0]
    # The reasons are in order: what no eviction can change comes before what the votes of plugins say.
    if not len(nodes):
        return OutOfReach(len(reachable))
    # No vote changes that, and asking about all pods is what costs most.
    if not victims.could_hold()[nodes].any() and victims.any_on(nodes):
        return TooSmall()
    statistics = victims.statistics(nodes)
    by = tuple((plugin, count, _which(ssn, plugin, names)) for plugin, count, names in statistics.spared if count)
    return Protected(queue, len(nodes), statistics.asked, statistics.named, by, statistics.enough)


def _which(ssn: Session, plugin: str, names: tuple[str, ...]) -> str:
    """Return which pods a plugin protects, and what protects them, if it says so."""
    kind = getattr(ssn.hooks.plugin(plugin), "spares", "")
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{kind} ({', '.join(names[:_NAMES_SHOWN])}{more})".lstrip() if names else kind
