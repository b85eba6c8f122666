"""A summary as the JSON that pages read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pumice.answers.codes import WORDS, Code
from pumice.columns.dtypes import F64
from pumice.runtime.job_states import CODES, STATES
from pumice.web.summary import CycleSummary

#: Kinds of nodes that take no new pod are named with so many examples.
_EXAMPLES = 3


def head(summary: CycleSummary) -> dict[str, Any]:
    """Return what every page shows of the cycle."""
    return {
        "at": summary.at,
        "digest": summary.digest,
        "language": summary.language,
        "bound": summary.bound,
        "evicted": summary.evicted,
        "faults": summary.faults,
        "resources": [{"name": each.name, "unit": each.unit} for each in summary.resources],
    }


def overview(summary: CycleSummary, health: Mapping[str, Any]) -> dict[str, Any]:
    """Return what waits by the kind of reason, and how much of the cluster is used. ``health``: of the last cycles."""
    jobs, nodes = summary.jobs, summary.nodes
    unreadable = sum(kind.jobs for kind in summary.waiting if kind.code is Code.UNREADABLE)
    states = np.bincount(jobs.state, minlength=len(STATES)).tolist()
    return {
        "states": dict(zip(STATES, states, strict=True)),
        "jobs": len(jobs),
        "nodes": len(nodes.names),
        "offers": nodes.offers.sum(axis=0).tolist(),
        "used": nodes.used.sum(axis=0).tolist(),
        "waiting": [
            {
                "code": kind.code.value,
                "meaning": WORDS[kind.code].meaning,
                "jobs": kind.jobs,
                "asks": kind.asks.tolist(),
                "example": kind.example,
                "shown": kind.shown,
                "sentence": kind.sentence,
            }
            for kind in summary.waiting
        ],
        "closed": _closed(nodes.names, nodes.closed),
        "health": {**health, "unreadable": unreadable},
    }


def queues(summary: CycleSummary) -> dict[str, Any]:
    """Return the queues, each after its parent."""
    found = summary.queues
    return {
        "offers": summary.nodes.offers.sum(axis=0).tolist(),
        "queues": [
            {
                "name": found.names[row],
                "depth": int(found.depth[row]),
                "parent": found.names[found.parent[row]] if found.parent[row] >= 0 else "",
                "weight": float(found.weight[row]),
                "open": bool(found.is_open[row]),
                "jobs": int(found.jobs[row]),
                "guarantee": found.guarantee[row].tolist(),
                "deserved": _finite(found.deserved[row]),
                "limit": _finite(found.limit[row]),
                "used": found.used[row].tolist(),
                "borrowed": found.borrowed[row].tolist(),
                "waiting": found.waiting[row].tolist(),
            }
            for row in _tree_order(found.names, found.parent.tolist())
        ],
    }


def nodes(summary: CycleSummary) -> dict[str, Any]:
    """Return the nodes and their devices by columns, the ways to group nodes, and why some take no new pod."""
    found, devices = summary.nodes, summary.devices
    order = np.array(sorted(range(len(found.names)), key=lambda row: found.names[row]), dtype=np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return {
        "names": [found.names[row] for row in order.tolist()],
        "groupings": [
            {"name": each.name, "groups": list(each.groups), "of": each.of[order].tolist()} for each in found.groupings
        ],
        "closed": [found.closed[row] for row in order.tolist()],
        "pods": found.pods[order].tolist(),
        "offers": found.offers[order].round(3).tolist(),
        "used": found.used[order].round(3).tolist(),
        "kinds": _closed(found.names, found.closed),
        "devices": {
            "node": place[devices.node].tolist(),
            "names": devices.names,
            "kinds": devices.kinds,
            "share": devices.share.round(3).tolist(),
            "holders": devices.holders.tolist(),
            "left_out": devices.left_out,
        },
    }


def choices(summary: CycleSummary) -> dict[str, Any]:
    """Return what jobs can be filtered by."""
    return {
        "queues": sorted(summary.queues.names),
        "states": list(STATES),
        "codes": [kind.code.value for kind in summary.waiting],
        "all_codes": {code.value: WORDS[code].meaning for code in CODES},
    }


def _closed(names: Sequence[str], closed: Sequence[str]) -> list[dict[str, Any]]:
    """Return why nodes take no new pod, the most frequent reason first."""
    kinds: dict[str, list[str]] = {}
    for name, why in zip(names, closed, strict=True):
        if why:
            kinds.setdefault(why, []).append(name)
    ordered = sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"why": why, "nodes": len(each), "examples": each[:_EXAMPLES]} for why, each in ordered]


def _finite(amounts: F64) -> list[float | None]:
    """Return amounts with None for no limit, because JSON has no infinity."""
    return [None if math.isinf(each) else each for each in amounts.tolist()]


def _tree_order(names: Sequence[str], parents: Sequence[int]) -> list[int]:
    """Return rows so that each comes after its parent and before the next queue of that level, by name."""
    below: dict[int, list[int]] = {}
    for row in sorted(range(len(names)), key=names.__getitem__):
        below.setdefault(parents[row], []).append(row)
    found: list[int] = []
    _walk(below, -1, found)
    # Those that are below themselves are reached from nowhere, and are shown at the end.
    seen = set(found)
    return [*found, *(row for row in range(len(names)) if row not in seen)]


def _walk(below: Mapping[int, Sequence[int]], top: int, found: list[int]) -> None:
    """Add the rows below one, without recursion: a tree may be as deep as it has queues."""
    left = list(reversed(below.get(top, ())))
    while left:
        row = left.pop()
        found.append(row)
        left += reversed(below.get(row, ()))
