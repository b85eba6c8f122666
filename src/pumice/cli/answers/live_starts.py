"""Expected starts of a scheduler that runs: ``--annotate-starts`` of ``pumice run`` and ``pumice serve --schedule``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.errors import InputError
from pumice.cli.params import SPAN

if TYPE_CHECKING:
    from pumice.kube.api.client import Client
    from pumice.kube.scheduler.answer_pages import AnswerPages
    from pumice.kube.scheduler.live import Live

#: What runs beside a scheduler while it leads.
Beside = Callable[[], Coroutine[Any, Any, None]]

annotate_starts_option = click.option(
    "--annotate-starts",
    type=SPAN,
    metavar="T",
    help="Predict the starts of waiting jobs every T, such as 5m, and write them as annotations on their PodGroups.",
)


def check_every(every_s: float | None) -> None:
    """Raises: InputError for a time that is too short."""
    from pumice.kube.scheduler.predicting import EVERY_MIN_S

    if every_s is not None and every_s < EVERY_MIN_S:
        raise InputError(f"--annotate-starts: found {every_s:g} s, wanted at least {EVERY_MIN_S:g} s")


def with_predictions(
    beside: Beside | None, every_s: float | None, answers: AnswerPages, client: Client, live: Callable[[], Live]
) -> Beside | None:
    """Return what runs beside a scheduler, with predictions of starts if they are asked for."""
    if every_s is None:
        return beside
    from pumice.kube.scheduler.predicting import PredictedStarts

    predicted = PredictedStarts(answers.starts, client, lambda: live().cluster.cache, every_s)
    answers.notes = predicted.notes

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(predicted.run())
            if beside is not None:
                group.create_task(beside())

    return both
