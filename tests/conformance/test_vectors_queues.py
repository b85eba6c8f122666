"""What KAI's proportion makes of random queues: fair shares, who goes first, what may be taken. All were measured."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.algorithms.queue_order import compare_requests, request_key
from pumice.algorithms.queue_tree import F64, allocatable_share, fair_share
from pumice.algorithms.reclaimable import QueueStates, is_reclaimable, may_reclaim

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
VECTORS = SHARED / "spec" / "kai" / "vectors"
ROWS_EXPECTED = {"fairshare": 398, "queue_order": 400, "reclaimable": 599}

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not VECTORS.is_dir(),
        reason=f"no recorded vectors at {VECTORS}: put `shared` beside the checkout or set PUMICE_SHARED",
    ),
]

#: The vectors say what a queue has of GPUs; with each go a core and 10^9 bytes, of which there is enough for all.
PER_GPU = np.array([1.0, 1e3, 1e9])
PLENTY = np.array([1e6, 1e12])
Raw = dict[str, Any]


@cache
def rows(name: str) -> list[Raw]:
    found: list[Raw] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", ROWS_EXPECTED)
def test_there_are_as_many_rows_as_were_measured(name: str) -> None:
    assert len(rows(name)) == ROWS_EXPECTED[name]


def column(queues: list[Raw], key: str) -> F64:
    """Shape (Q, 1); -1 is unlimited."""
    return np.array([[np.inf if queue[key] == -1 else queue[key]] for queue in queues], dtype=np.float64)


def test_fair_shares() -> None:
    wrong = []
    for row in rows("fairshare"):
        queues = row["queues"]
        by_age = sorted(range(len(queues)), key=lambda i, queues=queues: (queues[i]["created"], queues[i]["name"]))
        found = fair_share(
            np.array([float(row["total"])]),
            [np.arange(len(queues))],
            np.full(len(queues), -1),
            np.array([float(queue["priority"]) for queue in queues]),
            *(column(queues, key) for key in ("quota", "limit", "request", "weight", "usage")),
            row["k"],
            np.argsort(by_age),
        )
        wanted = [row["fair_share"][queue["name"]] for queue in queues]
        if not np.allclose(found[:, 0], wanted, rtol=0, atol=1e-9):
            wrong.append((row["id"], found[:, 0].tolist(), wanted))
    assert not wrong


def amounts(queue: Raw) -> dict[str, F64]:
    """Shapes (R,), GPUs first."""
    unlimited = np.full(2, np.inf)
    quota, limit = (np.append(column([queue], key)[0], unlimited) for key in ("quota", "limit"))
    fair = np.append(float(queue["fair_share"]), PLENTY)
    return {
        "allocated": queue["allocated"] * PER_GPU,
        "non_preemptible": queue["allocated_non_preemptible"] * PER_GPU,
        "quota": quota,
        "fair": fair,
        "share": allocatable_share(quota, limit, fair),
    }


def test_which_queue_goes_first() -> None:
    wrong = []
    for row in rows("queue_order"):
        both = [row["left"], row["right"]]
        held = [{key: value.tolist() for key, value in amounts(queue).items()} for queue in both]
        nothing = [0.0, 0.0, 0.0]
        total = [float(row["total_gpus"]), *PLENTY.tolist()]
        keys = [
            request_key(
                *(each["allocated"], nothing, nothing, each["fair"], each["quota"], each["share"]),
                total,
                float(queue["priority"]),
            )
            for each, queue in zip(held, both, strict=True)
        ]
        found = compare_requests(*keys, held[0]["share"], held[1]["share"]) or both[0]["created"] - both[1]["created"]
        if ("left" if found < 0 else "right") != row["first"]:
            wrong.append(row)
    assert not wrong


def test_what_may_be_taken_for_whom() -> None:
    wrong = []
    for row in rows("reclaimable"):
        queues = row["queues"]
        row_of = {queue["name"]: i for i, queue in enumerate(queues)}
        parent = np.array([row_of.get(queue["parent"], -1) for queue in queues])
        states = QueueStates(parent, **{k: np.stack([amounts(q)[k] for q in queues]) for k in amounts(queues[0])})
        taken = [(row_of[leaf], lump) for leaf, lumps in row["victim_lumps_gpus"].items() for lump in lumps]
        leaves = np.array([leaf for leaf, _ in taken], dtype=np.int64)
        lumps = np.array([lump * PER_GPU for _, lump in taken]).reshape(-1, 3)
        who, need = row_of[row["reclaimer"]["queue"]], row["reclaimer"]["gpus"] * PER_GPU
        preemptible = row["reclaimer"]["preemptible"]
        can = may_reclaim(states, who, need, preemptible)
        fair = is_reclaimable(states, who, need, preemptible, leaves, lumps, row["multiplier"])
        if (can, fair) != (row["can_reclaim"], row["reclaimable"]):
            wrong.append((row["id"], can, fair))
    assert not wrong
