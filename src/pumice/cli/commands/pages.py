"""``pumice pages``: what a cycle on a cluster from files or a snapshot decides, to be looked at in a browser."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import click

from pumice.cli.answers.world import Question, WorldOptions, conf_option, read_world, world_options
from pumice.cli.errors import InputError
from pumice.cli.extras import require
from pumice.cli.output import say
from pumice.cli.run_flags import place


@click.command()
@click.argument("files", metavar="FILES…|SNAPSHOT|-", nargs=-1, required=True)
@conf_option
@world_options
@click.option(
    "--listen",
    default="127.0.0.1:8470",
    metavar="ADDRESS:PORT",
    show_default=True,
    help="Where to serve: a loopback address. Port 0 takes any free port.",
)
@click.option(
    "--print",
    "document",
    type=click.Choice(["overview", "jobs", "queues", "nodes"]),
    help="Print what a page shows as JSON, and serve nothing.",
)
def pages(
    files: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    listen: str,
    document: str | None,
    strict: bool,
) -> None:
    """Serve pages about one cycle on FILES (manifests, as pumice schedule reads them), a SNAPSHOT, or standard input
    (-), until Ctrl-C.

    Overview: what waits, by reason. Queues: what each holds, wants and may hold. Jobs: all of them, filtered, sorted
    and grouped. Job: why it waits, and what would help, each tried. Nodes: how full each is, and why some take no pod.
    Nothing is written. Not yet: records of cycles, results of simulations, the future, and other addresses than those
    of this machine.

    \b
    Examples:
      pumice pages cluster/ jobs.yaml
      pumice pages cycle.pumice --listen 127.0.0.1:0
      kubectl get nodes,queues,podgroups,pods -A -o json | pumice pages -
    """
    if document is not None:
        _print(read_world(files, WorldOptions(conf, strict, plugins_dir, now, scheduler_name)), document)
        return
    require("pages", "serve")
    address, port = place("--listen", listen)
    asked = read_world(files, WorldOptions(conf, strict, plugins_dir, now, scheduler_name))
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(asked, address, port))


def _print(asked: Question, document: str) -> None:
    from pumice.answers.world import REASON_TRIALS_MAX, Trials
    from pumice.runtime.digest import digest_of
    from pumice.web.feed import Feed
    from pumice.web.jobs_query import JobsQuery
    from pumice.web.summary import summarize

    base, feed = Trials(asked.world, REASON_TRIALS_MAX).base, Feed()
    feed.publish(summarize(base.outcome, base.decisions, digest_of(asked.world.now, base.decisions)))
    index = feed.index
    assert index is not None
    everything = JobsQuery(rows=len(index.jobs))  # a page shows a part, a file has all
    text = feed.encoded(lambda _: index.answer(everything)) if document == "jobs" else feed.document(document)
    click.echo(text)


async def _serve(asked: Question, address: str, port: int) -> None:
    from pumice.answers.world import REASON_TRIALS_MAX, Trials
    from pumice.runtime.digest import digest_of
    from pumice.runtime.serving.listening import Place
    from pumice.runtime.serving.this_machine import is_loopback
    from pumice.web.feed import Feed
    from pumice.web.questions import Questions
    from pumice.web.server import serving
    from pumice.web.summary import summarize

    if not is_loopback(address):
        raise InputError(f"--listen {address or ':'}: pages are for this machine only; wanted a loopback address")
    base = Trials(asked.world, REASON_TRIALS_MAX).base
    digest = digest_of(asked.world.now, base.decisions)
    feed = Feed()
    feed.publish(summarize(base.outcome, base.decisions, digest))
    try:
        async with serving(feed, Place(address, port), Questions(asked.world, digest).explain) as url:
            say(f"pages on {url}; Ctrl-C stops")
            await asyncio.Event().wait()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"--listen: port {port} is in use: port 0 takes any free port") from None
        raise InputError(f"--listen {address}:{port}: {error.strerror or error}") from None
