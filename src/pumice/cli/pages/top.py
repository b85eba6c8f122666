"""``pumice top``: the overview of pages in a terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from pumice.cli.answers.world import WorldOptions, conf_option, world_options
from pumice.cli.console import Column, Table
from pumice.cli.errors import InputError
from pumice.cli.output import console, fail_for
from pumice.reasons.words import counted
from pumice.report.units import percent

if TYPE_CHECKING:
    from pumice.cli.console import Console
    from pumice.runtime.problems.problem import Problem

#: Columns of a bar that shows a share.
_BAR = 30
_CLEAR = "\x1b[H\x1b[2J"
_REASONS_MAX, _CLOSED_MAX = 20, 8


@click.command()
@click.argument("of", metavar="URL|FILES…|SNAPSHOT|RECORD|-", nargs=-1, required=True)
@conf_option
@world_options
@click.option(
    "--every", type=click.FloatRange(0.2, 3600), default=2.0, show_default=True, help="Seconds between updates."
)
@click.option("--once", is_flag=True, help="Print once and exit, as always without a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, once: what the page Overview reads.")
@click.pass_context
def top(
    ctx: click.Context,
    of: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    every: float,
    once: bool,
    as_json: bool,
    strict: bool,
) -> None:
    """Show what waits and why, and how full a cluster is, as the page Overview does.

    URL is the address of pages: of --pages of pumice run and pumice serve --schedule, or of pumice pages. It is asked
    again and again until Ctrl-C. Files, a snapshot and a record are shown once, as pumice pages reads them.

    \b
    Examples:
      pumice top http://127.0.0.1:8470
      pumice top http://127.0.0.1:8470 --json | jq .data.waiting
      pumice top examples/debug-gang
    """
    options = WorldOptions(conf, strict, plugins_dir, now, scheduler_name)
    is_url = len(of) == 1 and of[0].startswith(("http://", "https://"))
    look = _asked(of[0]) if is_url else _read(of, options)
    if as_json or once or not is_url or not sys.stdout.isatty():
        if as_json:
            click.echo(look.overview())
        else:
            _show(_decoded(look.overview()), look.relief())
        fail_for(ctx, look.problems)
        return
    try:
        while True:
            found, relief = _decoded(look.overview()), look.relief()
            click.echo(_CLEAR, nl=False)
            _show(found, relief)
            time.sleep(every)
    except KeyboardInterrupt:
        return


class _Look(Struct, frozen=True):
    """``overview``: returns what the page reads. ``relief``: returns the change that lets most jobs start, as far as it
    is known, None if it is not. ``problems``: what of the input could not be used."""

    overview: Callable[[], str]
    relief: Callable[[], Mapping[str, Any] | None]
    problems: tuple[Problem, ...] = ()


def _asked(url: str) -> _Look:
    from pumice.library import asking
    from pumice.library.errors import InputError as Refused

    def ask(path: str, *parameters: tuple[str, str]) -> str:
        try:
            return asking.ask(url, path, parameters)[0]
        except Refused as error:
            raise InputError(str(error)) from None

    def relief() -> Mapping[str, Any] | None:
        # It takes a while to be worked out, and is shown when it is there. Users who may not see all jobs get none.
        with suppress(InputError):
            found: Mapping[str, Any] | None = (_decoded(ask("/data/relief", ("wait", "0")))["data"] or {}).get("found")
            return found
        return None

    return _Look(partial(ask, "/data/overview"), relief)


def _read(paths: Sequence[str], options: WorldOptions) -> _Look:
    from pumice.cli.pages.source import source_of
    from pumice.web.feed import Feed

    source = source_of(paths, options)

    async def filled() -> str:
        feed = Feed()
        await source.fill(feed)
        await asyncio.sleep(0)  # what was handed on from a thread is taken in
        return feed.document("overview").decode()

    def relief() -> Mapping[str, Any] | None:
        return None if source.relief is None else source.relief()

    return _Look(lambda: asyncio.run(filled()), relief, source.problems)


def _decoded(text: str) -> dict[str, Any]:
    import msgspec

    try:
        found = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        raise InputError("the address does not serve pages: wanted that of --pages") from None
    if not isinstance(found, dict) or "head" not in found:
        raise InputError("the address does not serve pages: wanted that of --pages")
    return found


def _show(found: Mapping[str, Any], relief: Mapping[str, Any] | None) -> None:
    out, head, data = console(), found["head"], found["data"]
    for note in found.get("notes", ()):
        out.print(note, style="yellow")
    if head is None:
        out.print("no cycle has ended yet")
        return
    if head["at"] is None:
        out.print("these are results of a simulation, which have no cycle: see pumice pages")
        return
    waiting = sum(kind["jobs"] for kind in data["waiting"])
    at = datetime.fromtimestamp(head["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    out.print(f"{head['language']}, cycle at {at} UTC", style="bold")
    faults = f", {counted(head['faults'], 'plugin fault')}" if head["faults"] else ""
    out.print(
        f"{waiting:,} of {counted(data['jobs'], 'job')} {'waits' if waiting == 1 else 'wait'}; last cycle: "
        f"{head['bound']:,} bound, {head['evicted']:,} evicted{faults}; {counted(data['nodes'], 'node')}"
    )
    _show_health(out, data["health"])
    _show_use(out, head["resources"], data)
    _show_waiting(out, head["resources"], data["waiting"])
    best = None if relief is None else relief["best_change"]
    if best is not None:
        out.print()
        out.print(f"most would start with: {best['text']} ({counted(best['jobs'], 'job')})", style="green")
    for kind in data["closed"][:_CLOSED_MAX]:
        takes = "takes" if kind["nodes"] == 1 else "take"
        out.print(f"{counted(kind['nodes'], 'node')} {takes} no new pod: {kind['why']} ({', '.join(kind['examples'])})")


def _show_health(out: Console, health: Mapping[str, Any]) -> None:
    if health["median_s"] is not None:
        times = f"{1000 * health['median_s']:.3g} ms, longest {1000 * health['longest_s']:.3g} ms"
        out.print(f"time of the last {counted(health['cycles'], 'cycle')}: median {times}")
    troubles = [
        counted(health["faults"], "fault") + " of plugins" if health["faults"] else "",
        counted(health["cuts"], "cut search") if health["cuts"] == 1 else "",
        f"{health['cuts']:,} cut searches" if health["cuts"] > 1 else "",
        counted(health["unreadable"], "job") + " that cannot be read" if health["unreadable"] else "",
    ]
    if any(troubles):
        out.print(f"in these: {', '.join(filter(None, troubles))}", style="yellow")


def _show_use(out: Console, resources: Sequence[Mapping[str, str]], data: Mapping[str, Any]) -> None:
    table = Table(Column(wraps=False), Column(wraps=False), Column(right=True, wraps=False), Column(wraps=False))
    for place, resource in enumerate(resources):
        used, offered = data["used"][place], data["offers"][place]
        share = used / offered if offered > 0 else 0.0
        full = round(_BAR * min(share, 1.0))
        bar = ("█" * full + "░" * (_BAR - full), "red" if share > 0.95 else "green")
        table.add(resource["name"], bar, percent(share), f"{used:,.6g} of {offered:,.6g} {resource['unit']}")
    out.print()
    out.print_table(table)


def _show_waiting(out: Console, resources: Sequence[Mapping[str, str]], kinds: Sequence[Mapping[str, Any]]) -> None:
    out.print()
    if not kinds:
        out.print("No job waits.")
        return
    table = Table(Column("reason", wraps=False), Column("jobs", right=True, wraps=False), "they ask for", "for example")
    for kind in kinds[:_REASONS_MAX]:
        asks = [
            f"{amount:,.6g} {resource['name'] if '/' in resource['name'] else resource['unit']}"
            for amount, resource in zip(kind["asks"], resources, strict=True)
            if amount > 0
        ]
        example = f"{kind['example']}: {kind['sentence']}"
        table.add((kind["code"], "yellow"), f"{kind['jobs']:,}", ", ".join(reversed(asks)), example)
    out.print_table(table)
