"""The tables of a store by name instead of by row: what must be the same however the store came to know it."""

from __future__ import annotations

from typing import Any

from pumice.columns.dtypes import UNOFFERED
from pumice.columns.tables import Tables
from pumice.columns.tasks import TaskTable
from pumice.model.status import TaskStatus
from pumice.state.store import Store

Named = dict[str, dict[str, Any]]


def named(store: Store) -> Named:
    """What there is in each table of a fresh snapshot."""
    tables = store.snapshot().tables
    return {
        "nodes": _nodes(tables),
        "queues": _queues(tables),
        "jobs": _jobs(tables),
        "subs": _subs(tables),
        "tasks": {tables.tasks.pods[t].key: _task(tables, t) for t in tables.tasks.alive.nonzero()[0].tolist()},
        "budgets": dict(enumerate(tables.budgets.objs)),
        "topologies": dict(enumerate(tables.topologies.objs)),
        "claims": dict(enumerate(tables.claims.objs)),
        "slices": dict(enumerate(tables.slices.objs)),
        "device_classes": dict(enumerate(tables.device_classes.objs)),
        "volumes": dict(enumerate(tables.volumes.objs)),
        "volume_claims": dict(enumerate(tables.volume_claims.objs)),
        "storage_classes": dict(enumerate(tables.storage_classes.objs)),
        "csi_nodes": dict(enumerate(tables.csi_nodes.objs)),
        "storage_capacities": dict(enumerate(tables.storage_capacities.objs)),
        "quotas": dict(enumerate(tables.quotas.objs)),
        "usages": dict(enumerate(tables.usages.objs)),
        "histories": dict(enumerate(tables.histories.objs)),
        "numas": dict(enumerate(tables.numas.objs)),
        "device_grants": dict(enumerate(tables.device_grants.objs)),
        "tree": {
            name: [tables.nodes.facts.names[n] for n in tables.tree.nodes[row].tolist()]
            for name, row in tables.tree.row_of.items()
        },
    }


def _amount(tables: Tables, row: Any) -> dict[str, float]:
    """By name. A column stays for good, so resources that no node offers any more share one name."""
    found: dict[str, float] = {}
    for name, value in zip(tables.axis.names, row.tolist(), strict=True):
        if value:
            known = name in ("cpu", "memory", "pods") or name in _offered(tables)
            found[name if known else UNOFFERED] = found.get(name if known else UNOFFERED, 0.0) + value
    return found


def _offered(tables: Tables) -> set[str]:
    """What some node has, or a queue speaks of."""
    amounts = [amount for node in tables.nodes.facts.objs for amount in (node.allocatable, node.oversubscription)]
    for queue, status in zip(tables.queues.objs, tables.queue_statuses.objs, strict=True):
        stated = (queue.capability, queue.deserved, queue.guarantee, status.allocated)
        amounts += [amount for amount in stated if amount is not None]
    return {name for amount in amounts for name in amount.scalars or ()}


def _nodes(tables: Tables) -> dict[str, Any]:
    nodes, width = tables.nodes, len(tables.axis)
    return {
        name: {
            "allocatable": _amount(tables, nodes.facts.allocatable[n]),
            "books": [_amount(tables, book) for book in nodes.books[n]],
            "view": [_amount(tables, nodes.view[n, :width]), *nodes.view[n, width:].tolist()],
            "quarantined_by": nodes.quarantined_by[n].item(),
        }
        for n, name in enumerate(nodes.facts.names)
    }


def _queues(tables: Tables) -> dict[str, Any]:
    queues, statuses = tables.queues, tables.queue_statuses
    return {
        name: (
            statuses.objs[q].added_to(queues.objs[q]),
            _amount(tables, statuses.allocated[q]) if statuses.objs[q].allocated is not None else {},
            queues.weight[q],
            queues.open[q],
            _amount(tables, queues.guarantee[q]),
        )
        for q, name in enumerate(queues.names)
    }


def _counts(row: Any) -> dict[str, int]:
    return {TaskStatus(s).label: count for s, count in enumerate(row.tolist()) if count}


def _jobs(tables: Tables) -> dict[str, Any]:
    jobs = tables.jobs
    found: dict[str, Any] = {}
    for j in jobs.alive.nonzero()[0].tolist():
        found[jobs.uids[j]] = {
            "group": jobs.groups[j],
            "queue": tables.queues.names[jobs.queue[j]] if jobs.queue[j] >= 0 else None,
            "counts": _counts(jobs.counts[j]),
            "allocated": _amount(tables, jobs.allocated[j]),
            "tasks": [tables.tasks.pods[t].key for t in jobs.tasks[j].tolist()],
            "subs": [tables.subs.uids[s] for s in jobs.subs[j]],
            **{c: getattr(jobs, c)[j].item() for c in ("size", "best_effort", "waits", "gated")},
        }
        if jobs.groups[j] is None:
            continue  # what follows is the last PodGroup's, and means nothing
        found[jobs.uids[j]] |= {
            "min_resources": _amount(tables, jobs.min_resources[j]),
            "roles": sorted(jobs.role_min[j].values()),
            **{c: getattr(jobs, c)[j].item() for c in ("min_available", "priority", "creation", "role_total", "phase")},
            **{c: getattr(jobs, c)[j].item() for c in ("has_min", "has_policy", "has_topology", "quarantined")},
        }
    return found


def _subs(tables: Tables) -> dict[str, Any]:
    subs = tables.subs
    found: dict[str, Any] = {}
    for s in subs.alive.nonzero()[0].tolist():
        job = int(subs.job[s])
        found[subs.uids[s]] = {
            "job": tables.jobs.uids[job],
            "gid": subs.gids[s],
            "counts": _counts(subs.counts[s]),
            "best_effort": subs.best_effort[s].item(),
            "match_index": subs.match_index[s].item(),
            "tasks": [tables.tasks.pods[t].key for t in subs.tasks[s].tolist()],
        }
        if tables.jobs.groups[job] is not None:
            found[subs.uids[s]] |= {"min": subs.min_available[s].item(), "topology": subs.topologies[s]}
    return found


def _needed(tables: Tables, t: int) -> int | None:
    """How many tasks of the task's role its job needs; None without a minimum, or without a PodGroup to say it."""
    job = int(tables.tasks.job[t])
    if job < 0 or tables.jobs.groups[job] is None:
        return None
    needed: int | None = tables.jobs.role_min[job].get(int(tables.tasks.role[t]))
    return needed


def _place(tables: Tables, row: int) -> str:
    return tables.nodes.facts.names[row] if row >= 0 else ""


def _task(tables: Tables, t: int) -> dict[str, Any]:
    tasks: TaskTable = tables.tasks
    return {
        "pod": tasks.pods[t],
        "status": TaskStatus(int(tasks.status[t])).label,
        "job": tables.jobs.uids[tasks.job[t]] if tasks.job[t] >= 0 else "",
        "sub": tables.subs.uids[tasks.sub[t]] if tasks.sub[t] >= 0 else "",
        "spec": tables.classes.specs[tasks.cls[t]],
        "request": _amount(tables, tables.classes.req[tasks.cls[t]]),
        "needed of its role": _needed(tables, t),
        "node": _place(tables, int(tasks.node[t])),
        "view_node": _place(tables, int(tasks.view_node[t])),
        "nominated": _place(tables, int(tasks.nominated[t])),
        **{c: getattr(tasks, c)[t].item() for c in ("priority", "creation", "gate", "best_effort", "preemptable")},
    }


def disagreements(found: Named, wanted: Named) -> list[str]:
    """One line a thing that is not the same, as ``jobs ns/g: queue: found …, wanted …``."""
    lines = []
    for table in sorted(found.keys() | wanted.keys()):
        ours, theirs = found.get(table, {}), wanted.get(table, {})
        for name in sorted(ours.keys() | theirs.keys()):
            lines += [f"{table} {name}{line}" for line in _difference(ours.get(name), theirs.get(name))]
    return lines


def _difference(found: Any, wanted: Any) -> list[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = [k for k in sorted(found.keys() | wanted.keys()) if found.get(k) != wanted.get(k)]
        return [f".{key}: found {found.get(key)!r}, wanted {wanted.get(key)!r}" for key in keys]
    return [] if found == wanted else [f": found {found!r}, wanted {wanted!r}"]
