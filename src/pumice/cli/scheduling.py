"""The scheduler of ``pumice serve --schedule``: that of ``pumice run``, in the server's process, over its HTTP API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pumice.cli.answers.live_starts import with_predictions

if TYPE_CHECKING:
    from pumice.kube.api.access import Access
    from pumice.kube.scheduler.answer_pages import AnswerPages
    from pumice.kube.scheduler.languages import ClusterLanguage
    from pumice.kube.scheduler.live import AfterCycle, Live
    from pumice.kube.scheduler.reload import ConfFile
    from pumice.kube.scheduler.settings import Settings
    from pumice.runtime.telemetry.metrics import Metrics

_IDENTITY = "pumice-serve"  # one a server, and it dies with it: the next one need not wait for a Lease of this name
_PERIOD_S, _PERIOD_MIN_S = 1.0, 0.1


async def schedule(
    access: Access,
    conf: ConfFile,
    metrics: Metrics,
    speed: float,
    stop: asyncio.Event,
    answers: AnswerPages,
    after_cycle: AfterCycle | None = None,
    annotate_starts_s: float | None = None,
) -> None:
    """Schedule until ``stop``. The scheduler then finishes its cycle, writes its decisions and releases the Lease.

    ``speed``: the period becomes shorter by the speed of pods, with at most ten cycles per second. Leadership that is
    lost, for example while a machine sleeps, is requested again. ``answers``: asks this scheduler from now on.
    ``annotate_starts_s``: how often starts are predicted, None for never. Raises: KubeError.
    """
    from pumice.kube.api.client import Client
    from pumice.kube.controllers.leading import FOR_KAI, Controllers, Deference
    from pumice.kube.controllers.loop import ControlSettings
    from pumice.kube.scheduler.languages import KAI, language_of
    from pumice.kube.scheduler.lease import Election
    from pumice.kube.scheduler.live import Live
    from pumice.runtime.controllers.kai.groups import GroupingSettings
    from pumice.runtime.controllers.podgroups import GroupSettings

    dialect, language = conf.current.policy.dialect, language_of(conf.current.policy)
    names, queue = (dialect.scheduler,), dialect.default_queue
    is_kai = language is KAI
    async with Client(access) as client, Client(access) as aside:
        election = Election(aside, *language.lease, _IDENTITY)
        leading = client.fenced(lambda: election.holds)
        controllers = Controllers(
            leading,
            ControlSettings(groups=GroupSettings(scheduler_names=names), default_queue=queue),
            deference=FOR_KAI if is_kai else Deference(),
            metrics=metrics,
            grouping=GroupingSettings(names, queue) if is_kai else None,
        )
        live = answers.live = Live(
            client,
            conf,
            _settings(language, names, queue, speed),
            metrics,
            election=election,
            after_cycle=after_cycle,
            beside=with_predictions(controllers.run, annotate_starts_s, answers, leading, lambda: live),
        )
        stopping = asyncio.create_task(_stopped(stop, live))
        try:
            await live.run()
        finally:
            answers.live = None
            stopping.cancel()


def _settings(language: ClusterLanguage, names: tuple[str, ...], queue: str, speed: float) -> Settings:
    from pumice.kube.binding.gpu_reservations import ReservationSettings
    from pumice.kube.scheduler.languages import KAI
    from pumice.kube.scheduler.settings import Settings
    from pumice.kube.writers.writing import Writing

    return Settings(
        names,
        queue,
        period_s=min(max(_PERIOD_S / speed, _PERIOD_MIN_S), _PERIOD_S),
        lease_namespace=language.lease[0],
        language=language,
        # Nodes without machines run no image: they say themselves which GPU is reserved.
        writing=Writing(reserving=ReservationSettings("none") if language is KAI else None),
    )


async def _stopped(stop: asyncio.Event, live: Live) -> None:
    await stop.wait()
    live.stop()
