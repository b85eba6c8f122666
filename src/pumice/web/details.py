"""One job or one node of a summary, with its pods, as the JSON that pages read."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.model.status import TaskStatus
from pumice.runtime.job_times import JobTimes
from pumice.web.summary import CycleSummary

#: Pods of one answer.
PODS_MAX = 200
#: Amounts are rounded by their units, which is no lack.
_EPS = 1e-6


class NoSuchNode(LookupError):
    """No node of the summary has that name."""


def pods_of_job(summary: CycleSummary, row: int) -> dict[str, Any]:
    """Return the pods of a job, those with a node first, at most ``PODS_MAX``."""
    return _pods(summary, (summary.pods.job == row).nonzero()[0])


def time_of_job(times: JobTimes, name: str, until: float) -> dict[str, Any] | None:
    """Return what happened to a job, and how long it was in each state; None if it is not followed. ``until``: when the
    last cycle ended."""
    found = times.of(name, until)
    if found is None:
        return None
    return {
        "moments": [(each.at, each.label) for each in found.moments],
        "seconds": found.seconds,
        "is_whole": found.is_whole,
        "until": max(times.at, until),
    }


def node(summary: CycleSummary, name: str) -> dict[str, Any]:
    """Return one node: its amounts, devices and pods, and what keeps waiting jobs off it. Raises: NoSuchNode."""
    nodes, devices = summary.nodes, summary.devices
    row = next((row for row, each in enumerate(nodes.names) if each == name), None)
    if row is None or not name:
        raise NoSuchNode(name)
    own = (devices.node == row).nonzero()[0].tolist()
    return {
        "name": name,
        "groups": [
            {"name": each.name, "group": each.groups[each.of[row]]} for each in nodes.groupings if each.of[row] >= 0
        ],
        "closed": nodes.closed[row],
        "offers": nodes.offers[row].tolist(),
        "used": nodes.used[row].tolist(),
        "devices": [
            {
                "name": devices.names[each],
                "kind": devices.kinds[each],
                "share": float(devices.share[each]),
                "holders": int(devices.holders[each]),
            }
            for each in own
        ],
        "lacks": _lacks(summary, row),
        **_pods(summary, (summary.pods.node == row).nonzero()[0]),
    }


def _pods(summary: CycleSummary, rows: AnyArray) -> dict[str, Any]:
    pods, jobs, nodes = summary.pods, summary.jobs.names, summary.nodes.names
    rows = rows[np.argsort(pods.node[rows] < 0, kind="stable")]
    shown = [
        {
            "name": pods.names[row],
            "job": jobs[pods.job[row]] if pods.job[row] >= 0 else "",
            "node": nodes[pods.node[row]] if pods.node[row] >= 0 else "",
            "status": TaskStatus(int(pods.status[row])).label,
        }
        for row in rows[:PODS_MAX].tolist()
    ]
    return {"pods": shown, "pods_left_out": len(rows) - len(shown)}


def _lacks(summary: CycleSummary, row: int) -> dict[str, Any]:
    """Return of how many waiting jobs a pod of mean size has no room on a node, by the first resource that is short,
    devices first; and of how many it has."""
    jobs, nodes = summary.jobs, summary.nodes
    rows = ((jobs.code >= 0) & (jobs.waiting > 0)).nonzero()[0]
    each = jobs.asks[rows] / jobs.waiting[rows, None]
    short = each > nodes.offers[row] - nodes.used[row] + _EPS
    order = [*range(2, short.shape[1]), 0, 1]
    first = np.where(short.any(axis=1), short[:, order].argmax(axis=1), len(order))
    counts = np.bincount(first, minlength=len(order) + 1).tolist()
    return {
        "short": [{"resource": column, "jobs": counts[place]} for place, column in enumerate(order) if counts[place]],
        "fit": counts[len(order)],
    }
