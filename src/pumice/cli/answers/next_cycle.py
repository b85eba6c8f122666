"""What the next cycle would do, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.reasons.words import counted
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.answers.next_cycle import NextCycle

SCHEMA = "pumice.next/1"
_SHOWN_MAX, _NODES_MAX = 20, 4


def print_next(found: NextCycle, digest: str, shown: Callable[[str], str]) -> None:
    """Print what is bound, reserved, evicted and admitted, and what waits and why. ``shown``: returns what people call
    a job, by key."""
    out = console()
    parts = [
        (sum(sum(nodes.values()) for nodes in found.binds.values()), "pod bound", "pods bound"),
        (sum(sum(nodes.values()) for nodes in found.reserves.values()), "pod with a reservation", "pods with one"),
        (len(found.evicts), "pod evicted", "pods evicted"),
        (len(found.admits), "job admitted", "jobs admitted"),
    ]
    texts = [f"{count:,} {one if count == 1 else many}" for count, one, many in parts if count]
    out.print(
        ", ".join([*(texts or ["the next cycle decides nothing"]), f"{counted(len(found.waits), 'job')} waiting"])
    )
    lines = Table(Column(wraps=False), Column(), gap=2)
    for job in found.admits[:_SHOWN_MAX]:
        lines.add(("admitted", "green"), escaped(shown(job)))
    for what, style, jobs in (("bound", "green", found.binds), ("reserved", "cyan", found.reserves)):
        for job, nodes in list(jobs.items())[:_SHOWN_MAX]:
            lines.add((what, style), escaped(f"{shown(job)}  {_nodes(nodes)}"))
    for pod, node, reason in found.evicts[:_SHOWN_MAX]:
        lines.add(("evicted", "red"), escaped(f"{pod} from {node}: {reason}"))
    for job, code, text in found.waits[:_SHOWN_MAX]:
        lines.add(("waits", "yellow"), escaped(f"{shown(job)}  {code.value}: {text}"))
    out.print_table(lines)
    longest = max(map(len, (found.admits, found.binds, found.reserves, found.evicts, found.waits)))
    if longest > _SHOWN_MAX:
        out.print(f"at most {_SHOWN_MAX} of each are shown; --json lists all")
    out.print(f"\ndigest {digest}", style="dim")


def _nodes(nodes: Mapping[str, int]) -> str:
    shown = [f"{node} ({count})" for node, count in list(nodes.items())[:_NODES_MAX]]
    more = len(nodes) - _NODES_MAX
    return f"{counted(sum(nodes.values()), 'pod')} on {', '.join(shown)}{f' and {more:,} more' if more > 0 else ''}"


def described(found: NextCycle, digest: str) -> dict[str, Any]:
    """Return the stable shape of ``pumice next --json``."""
    return {
        "schema": SCHEMA,
        "digest": digest,
        "bound": {job: dict(nodes) for job, nodes in found.binds.items()},
        "reserved": {job: dict(nodes) for job, nodes in found.reserves.items()},
        "evicted": [{"pod": pod, "node": node, "reason": reason} for pod, node, reason in found.evicts],
        "admitted": list(found.admits),
        "waiting": [{"job": job, "code": code.value, "sentence": text} for job, code, text in found.waits],
    }
