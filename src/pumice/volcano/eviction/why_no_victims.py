"""What stood against making room for a task, in words and numbers.

The same for all jobs that fail alike, so it names no pod and no job.
"""

from __future__ import annotations

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.volcano.eviction.node_search import Victims


def why_no_victims(ssn: Session, victims: Victims, reachable: Bool, of_whom: str) -> str:
    """Of a task for which no node was found. ``reachable`` (N,): nodes that filters leave to it. ``of_whom``:
    whose pods might have been evicted."""
    nodes = reachable.nonzero()[0]
    if not len(nodes):
        return f"filters leave none of {len(reachable)} nodes to it, whoever may go"
    census = victims.census(nodes)
    if not census.asked:
        return f"no running pod {of_whom} on {len(nodes)} nodes might go for it"
    found = f"{census.named} of {census.asked} running pods {of_whom} on {len(nodes)} nodes may go for it"
    spared = [f"{plugin} spares {count}{_which(ssn, plugin)}" for plugin, count in census.spared if count]
    text = "; ".join([found, *spared])
    if census.enough:
        return f"{text}; on {census.enough} nodes that is room enough, but filters or its queue object"
    return f"{text}; on no node is that room enough" if census.named else text


def _which(ssn: Session, plugin: str) -> str:
    """Which pods a plugin does not let others evict, as far as it says."""
    said = getattr(ssn.hooks.plugin(plugin), "spares", "")
    return f" {said}" if said else ""
