"""Why jobs wait, and what would help them, over the engine of ``pumice explain``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pumice.answers.all_waiting import TRIALS_MAX, overview
from pumice.answers.explanation import explain, find_job
from pumice.answers.plain import described, overview_described
from pumice.answers.world import REASON_TRIALS_MAX, Trials, World
from pumice.library.column import count, flag, number, text
from pumice.library.html import html_facts
from pumice.library.policies import PolicySource
from pumice.library.table import Table
from pumice.library.text import screen
from pumice.runtime.digest import digest_of

if TYPE_CHECKING:
    from pumice.library.cluster import Cluster

REASON_COLUMNS = (
    text("code", "what is in the way, one word"),
    text("name", "which resource; missing if it is none"),
    text("sentence", "the same with numbers"),
)
WAY_COLUMNS = (
    text("text", "what to change"),
    text("command", "the first command that does it; missing if there is none"),
    number("minimum_lowered", "share 0 to 1", "part of the gang's minimum that is given up"),
    number("added", "GPUs or cores", "resources added: GPUs, or cores for a job that asks for none"),
    number("work_lost", "GPU hours or core hours", "work of jobs that leave"),
    flag("waits", "it starts once evicted pods have left"),
    text("loses", "jobs that would have started, or that lose pods"),
)
WAITING_COLUMNS = (
    text("code", "what is nearest in the way"),
    count("jobs", "jobs", "how many wait for it"),
    number("gpus", "GPUs", "what they ask for"),
    number("cores", "cores", "what they ask for"),
    text("example", "one of them, and why it waits"),
)


def explanation_of(
    cluster: Cluster, job: str, policy: PolicySource, *, ways: bool, scheduler_names: Sequence[str]
) -> Explanation:
    """Raises: LookupError for a job that does not exist."""
    world = _world(cluster, policy, scheduler_names)
    key = find_job(world, job)
    trials = Trials(world, REASON_TRIALS_MAX)
    found = explain(world, key, ways=ways, trials=trials)
    return Explanation(described(found, digest_of(world.now, trials.base.decisions)))


def waiting_of(cluster: Cluster, policy: PolicySource, scheduler_names: Sequence[str]) -> Waiting:
    world = _world(cluster, policy, scheduler_names)
    trials = Trials(world, TRIALS_MAX)
    return Waiting(overview_described(overview(trials), digest_of(world.now, trials.base.decisions)))


def _world(cluster: Cluster, policy: PolicySource, scheduler_names: Sequence[str]) -> World:
    now = cluster.inputs.newest
    return World(
        cluster.objects(now, policy), policy.policy, now, tuple(scheduler_names) or (policy.policy.dialect.scheduler,)
    )


class Explanation:
    """Why one job waits. ``verdict``: starts, not now, never, held, or unknown. ``digest``: of the cycle as things
    are."""

    def __init__(self, found: dict[str, Any]) -> None:
        """``found``: what ``pumice explain --json`` prints."""
        self._found = found
        self.job, self.verdict, self.digest = found["job"], found["verdict"], found["proof"]["digest"]

    @cached_property
    def reasons(self) -> Table:
        """What is in the way: without all of it the job starts, without some of it it does not."""
        rows = [(part["code"], part["name"] or None, part["sentence"]) for part in self._found["reason"]]
        return Table("reasons", REASON_COLUMNS, lambda: rows)

    @cached_property
    def ways(self) -> Table:
        """Changes that were run and let the job start, the cheapest first."""
        rows = [
            (
                "; ".join(way["text"]),
                way["commands"][0] if way["commands"] else None,
                way["cost"]["minimum_lowered"],
                way["cost"]["resources_added"],
                way["cost"]["work_lost_hours"],
                way["waits_for_evictions"],
                ", ".join(way["loses"]),
            )
            for way in self._found["ways_out"]
        ]
        return Table("ways", WAY_COLUMNS, lambda: rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as ``pumice explain --json`` prints it."""
        return dict(self._found)

    def _facts(self) -> dict[str, str]:
        found = self._found
        facts = {
            self.job: self.verdict,
            "queue": found["queue"],
            "pods": f"{found['pods']}, {found['waiting']} waiting",
        }
        facts |= {f"{i}. {part['code']}": part["sentence"] for i, part in enumerate(found["reason"], 1)}
        return facts | {f"way {i}": "; ".join(way["text"]) for i, way in enumerate(found["ways_out"], 1)}

    def __repr__(self) -> str:
        return screen([f"{name}: {value}" for name, value in self._facts().items()])

    def _repr_html_(self) -> str:
        return html_facts("explanation", self._facts())


class Waiting:
    """All jobs that wait. ``relief``: the change that lets most of them start, in words; nothing if none does."""

    def __init__(self, found: dict[str, Any]) -> None:
        """``found``: what ``pumice explain --all --json`` prints."""
        self._found = found
        self.digest = found["proof"]["digest"]
        self.relief = (found["best_change"] or {"text": ""})["text"]

    @cached_property
    def reasons(self) -> Table:
        """A row for each reason."""
        rows = [
            (each["code"], len(each["jobs"]), each["gpus"], each["cores"], f"{each['jobs'][0]}: {each['example']}")
            for each in self._found["waiting"]
        ]
        return Table("waiting", WAITING_COLUMNS, lambda: rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as ``pumice explain --all --json`` prints it."""
        return dict(self._found)

    def __repr__(self) -> str:
        return screen([*repr(self.reasons).splitlines(), *([f"would help: {self.relief}"] if self.relief else [])])

    def _repr_html_(self) -> str:
        return self.reasons._repr_html_()
