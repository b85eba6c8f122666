"""``pumice pages``: a cycle on a cluster from files, a record or the results of a simulation, in a browser."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli.answers.world import WorldOptions, conf_option, namespaces_option, world_options
from pumice.cli.errors import InputError
from pumice.cli.extras import require
from pumice.cli.output import fail_for, print_json, say
from pumice.cli.run_flags import place

if TYPE_CHECKING:
    from pumice.cli.pages.source import Source


@click.command()
@click.argument("files", metavar="FILES…|SNAPSHOT|RECORD|RUN.json|-", nargs=-1, required=True)
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
    type=click.Choice(["overview", "jobs", "queues", "nodes", "cycles", "starts"]),
    help="Print what a page shows as JSON, and serve nothing.",
)
@namespaces_option
@click.option(
    "--try-policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="F.conf",
    help="Print as JSON what the page Policy answers about this policy, tried on the newest cycle; serve nothing.",
)
@click.pass_context
def pages(
    ctx: click.Context,
    files: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    listen: str,
    document: str | None,
    seen: frozenset[str] | None,
    try_policy: Path | None,
    strict: bool,
) -> None:
    """Serve pages about one cycle on FILES (manifests, as pumice schedule reads them), a SNAPSHOT or standard input
    (-), about a RECORD, or about the results of a simulation (RUN.json), until Ctrl-C.

    Overview: what waits, by reason. Queues: what each holds, wants and may hold. Jobs: all of them, filtered, sorted
    and grouped. Job: why it waits, and what would help, each tried. Nodes: how full each is, and why some take no pod.
    Cycles: where their time went, faults of plugins. The cycles of a RECORD (--record of pumice run or simulate) are
    run again: charts show all of them, everything else the last one. Nothing is written. Addresses beyond
    this machine are for pumice run --pages.

    \b
    Examples:
      pumice pages cluster/ jobs.yaml
      pumice pages cycle.pumice --listen 127.0.0.1:0
      pumice simulate examples/demo --record rec && pumice pages rec
      kubectl get nodes,queues,podgroups,pods -A -o json | pumice pages -
    """
    from pumice.cli.pages.source import source_of

    options = WorldOptions(conf, strict, plugins_dir, now, scheduler_name)
    if seen is not None and document != "jobs":
        raise InputError("--for-namespaces: wanted --print jobs as well")
    if try_policy is not None or document is not None:
        source = source_of(files, options)
        if try_policy is not None:
            asyncio.run(_try(source, try_policy))
        elif document is not None:
            asyncio.run(_print(source, document, seen))
        fail_for(ctx, source.problems)
        return
    require("pages", "serve")
    address, port = place("--listen", listen)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(source_of(files, options), address, port))


async def _try(source: Source, path: Path) -> None:
    from pumice.runtime.policy.conf import conf_bytes
    from pumice.web.feed import Feed

    if source.policies is None:
        raise InputError("--try-policy: wanted a cluster or a record of cycles")
    await source.fill(Feed())
    print_json(await source.policies.run(conf_bytes(path).decode("utf-8", "replace"), 1))


async def _print(source: Source, document: str, seen: frozenset[str] | None) -> None:
    from pumice.runtime.serving.viewers import Scope
    from pumice.web.feed import Feed
    from pumice.web.jobs_query import JobsQuery
    from pumice.web.seen import SeenJobs
    from pumice.web.shared_work import NoResult

    if document == "starts":
        if source.starts is None:
            raise InputError("--print starts: wanted files, a snapshot or a record")
        await source.fill(Feed())  # the cycles of a record come first
        try:
            print_json(source.starts())
        except NoResult as error:
            raise InputError(f"--print starts: {error}") from None
        return
    feed = Feed()
    await source.fill(feed)
    await asyncio.sleep(0)  # what was handed on from a thread is taken in
    index = SeenJobs().index(feed.index, Scope(seen))
    if index is not None and document == "jobs":
        everything = JobsQuery(rows=len(index.jobs))  # a page shows a part, a file has all
        click.echo(feed.encoded(lambda _: index.answer(everything)))
    elif document == "cycles":
        click.echo(feed.times())
    else:
        click.echo(feed.document(document))


async def _serve(source: Source, address: str, port: int) -> None:
    from pumice.runtime.serving.listening import Place
    from pumice.runtime.serving.this_machine import is_loopback
    from pumice.web.feed import Feed
    from pumice.web.server import serving

    if not is_loopback(address):
        raise InputError(f"--listen {address or ':'}: pages are for this machine only; wanted a loopback address")
    feed = Feed()
    source.ask(feed)
    try:
        async with serving(feed, Place(address, port), source.explain, source.policies) as url:
            say(f"pages on {url}; Ctrl-C stops")
            await source.fill(feed)
            await asyncio.Event().wait()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"--listen: port {port} is in use: port 0 takes any free port") from None
        raise InputError(f"--listen {address}:{port}: {error.strerror or error}") from None
