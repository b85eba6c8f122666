"""Answers as dictionaries for JSON. A field keeps its name and meaning as long as the schema keeps its number."""

from __future__ import annotations

from typing import Any

from pumice.answers.all_waiting import Overview
from pumice.answers.codes import WORDS
from pumice.answers.difference import Difference
from pumice.answers.explanation import VERDICT_MEANINGS, Explanation, Part
from pumice.answers.waiting import Wait
from pumice.answers.ways import Way

EXPLAIN_SCHEMA, OVERVIEW_SCHEMA = "pumice.explain/1", "pumice.explain-all/1"
WHATIF_SCHEMA = "pumice.whatif/1"


def described(found: Explanation, digest: str) -> dict[str, Any]:
    """Return an explanation as ``pumice explain --json`` prints it. ``digest``: of the cycle as things are."""
    return {
        "schema": EXPLAIN_SCHEMA,
        "job": found.job,
        "shown": found.shown,
        "verdict": found.verdict.value,
        "verdict_means": VERDICT_MEANINGS[found.verdict],
        "queue": found.queue,
        "pods": found.pods,
        "each_asks": None if found.each is None else {"resource": found.each.resource, "amount": found.each.value},
        "waiting": found.waiting,
        "minimum": found.minimum,
        "waited_s": found.waited_s,
        "place": None
        if found.place is None
        else {
            "number": found.place.number,
            "of": found.place.count,
            "ahead": list(found.place.ahead),
            "by": found.place.by,
        },
        "reason": list(map(_part, found.parts)),
        "not_because": list(found.not_because),
        "ways_out": list(map(_way, found.ways)),
        "wait": None if found.wait is None else _wait(found.wait),
        "proof": {
            "digest": digest,
            "trials": found.trials,
            "minimal": found.is_checked,
            "smallest": found.is_smallest,
            "cut": found.is_cut,
        },
    }


def _part(part: Part) -> dict[str, Any]:
    words = WORDS[part.code]._asdict()
    return {
        "code": part.code.value,
        "name": part.name,
        "sentence": part.sentence,
        "also_known_as": {who: text for who, text in words.items() if who != "meaning" and text},
        "blocker": None if part.blocker is None else part.blocker.plain,
        "held_by": [{"job": each.job, "resource": each.resource, "amount": each.amount} for each in part.holders],
    }


def _way(way: Way) -> dict[str, Any]:
    return {
        "text": list(way.text),
        "commands": list(way.commands),
        "whatif": list(way.changes),
        "cost": {
            "minimum_lowered": way.cost.lowered,
            "resources_added": way.cost.added,
            "work_lost_hours": way.cost.lost,
            "edits": way.cost.edits,
            "rank": way.cost.rank[0],
        },
        "loses": list(way.losers),
        "waits_for_evictions": way.waits,
    }


def _wait(wait: Wait) -> dict[str, Any]:
    return {
        "seconds": wait.seconds,
        "until_ended": list(wait.ends),
        "running": wait.running,
        "without_estimate": wait.without_estimate,
    }


def overview_described(found: Overview, digest: str) -> dict[str, Any]:
    """Return all waiting jobs as ``pumice explain --all --json`` prints them."""
    relief = found.relief
    return {
        "schema": OVERVIEW_SCHEMA,
        "waiting": [
            {
                "code": group.code.value,
                "jobs": list(group.jobs),
                "gpus": group.gpus,
                "cores": group.cores,
                "example": group.example,
            }
            for group in found.groups
        ],
        "best_change": None
        if relief is None
        else {"text": relief.text, "jobs": relief.jobs, "gpus": relief.gpus, "cores": relief.cores},
        "proof": {"digest": digest, "trials": found.trials},
    }


def difference_described(found: Difference, before: str, after: str) -> dict[str, Any]:
    """Return a difference as ``pumice whatif --json`` prints it, with the digests of both cycles. Amounts are in the
    units of the core."""
    return {
        "schema": WHATIF_SCHEMA,
        "changes_something": not found.is_empty,
        "digest": {"before": before, "after": after},
        "placed": dict(found.placed),
        "not_placed": dict(found.not_placed),
        "displaced": dict(found.displaced),
        "evicted": list(found.evicted),
        "spared": list(found.spared),
        "admitted": list(found.admitted),
        "not_admitted": list(found.not_admitted),
        "waiting": [
            {
                "job": each.job,
                "code": each.code.value,
                "sentence": each.sentence,
                "code_before": None if each.before is None else each.before.value,
            }
            for each in found.waits
        ],
        "queues": [
            {"queue": share.queue, "resource": share.resource, "before": share.before, "after": share.after}
            for share in found.shares
        ],
    }
