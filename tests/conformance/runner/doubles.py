"""Test doubles that recorded cases put in a tier, made from the words in which the recording describes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Vote
from pumice.framework.plugin.plugin import plugin
from pumice.volcano import points

_REJECTER = re.compile(r"jobEnqueueable: reject \(-1\) the PodGroup named (\S+), permit \(\+1\) the rest")
_VICTIMS = re.compile(r"victimTasks: of the candidate tasks, those whose pod priority is (-?\d+)")


def doubles(described: Mapping[str, str]) -> Iterator[Callable[..., Any]]:
    """A plugin for each description that is understood; the others stay unknown names."""
    for name, text in described.items():
        if found := _REJECTER.fullmatch(text):
            yield plugin(name)(_rejecter(found[1]))
        elif found := _VICTIMS.fullmatch(text):
            yield plugin(name)(_victims(int(found[1])))


def _rejecter(group: str) -> type:
    class Rejecter:
        def __init__(self, ssn: Session) -> None:
            """Keeps nothing."""

        @points.job_enqueueable
        def vote(self, job: Job) -> Vote:
            return Vote.REJECT if job.group.name == group else Vote.PERMIT

    return Rejecter


def _victims(priority: int) -> type:
    class Victims:
        def __init__(self, ssn: Session) -> None:
            """Keeps nothing."""

        @points.victim_tasks
        def name_victims(self, tasks: TaskRows) -> Bool:
            return np.array([pod.spec.priority == priority for pod in tasks.pods], dtype=bool)

    return Victims
