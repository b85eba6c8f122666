"""``pumice story``: what happened to a job, from a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.answers.recording import FOLDER, recorded_policy
from pumice.cli.console import Column, Table
from pumice.cli.errors import FAILED, InputError
from pumice.cli.output import console, print_json, say
from pumice.cli.policies import plugins_option
from pumice.reasons.words import counted
from pumice.report.units import duration
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.runtime.record.reading import End
    from pumice.runtime.record.story import JobChange

SCHEMA = "pumice.story/1"
_STYLES = {"waits": "yellow", "holds nodes": "green", "has no node": "dim", "is gone": "dim"}


@click.command()
@click.argument("job", metavar="JOB")
@click.argument("folder", metavar="DIR", type=FOLDER)
@plugins_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def story(ctx: click.Context, job: str, folder: Path, plugins_dir: str, as_json: bool) -> None:
    """Say what happened to JOB (namespace/name): each change of why it waited, and each decision about it.

    DIR was written by --record of pumice run or pumice simulate. Its cycles are run again. If a file of the record is
    damaged, the rest is used, a line says where it ends, and the exit code is 1.

    \b
    Examples:
      pumice simulate examples/demo --record rec && pumice story demo/bert-elastic rec
      pumice story ml/bert /var/lib/pumice/record --json
    """
    from pumice.runtime.record.reading import End, RecordError
    from pumice.runtime.record.replay import replay
    from pumice.runtime.record.story import JobNames, story, waited_by_code

    names = JobNames(job)
    try:
        found = list(story(names.watch(replay(folder, recorded_policy(plugins_dir))), job))
    except RecordError as error:
        raise InputError(str(error)) from None
    moments = [each for each in found if not isinstance(each, End)]
    ends = [each for each in found if isinstance(each, End)]
    if not moments:
        hint = f"; did you mean {' or '.join(names.near)}?" if names.near else ""
        raise InputError(f"found no job {job!r} in the record{hint}")
    if as_json:
        print_json(_described(job, moments, ends) | {"waited_s": waited_by_code(moments, names.until)})
    else:
        _print(job, moments, names.until)
    for end in ends:
        say(f"error: {end.why}")
    if ends:
        ctx.exit(FAILED)


def _described(job: str, moments: list[JobChange], ends: list[End]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "job": job,
        "moments": [
            {
                "cycle": each.cycle,
                "now": each.now,
                "state": each.state,
                "code": None if each.code is None else each.code.value,
                "sentence": each.sentence,
                "bound": each.bound,
                "evicted": each.evicted,
            }
            for each in moments
        ],
        "ends": [end.why for end in ends],
    }


def _print(job: str, moments: list[JobChange], until: float) -> None:
    from pumice.runtime.record.story import waited_by_code

    out, first = console(), moments[0].now
    out.print(escaped(job), style="bold")
    lines = Table(
        Column(right=True, wraps=False), Column(right=True, wraps=False), Column(wraps=False), Column(), gap=2
    )
    for each in moments:
        decided = [f"{counted(each.bound, 'pod')} bound"] if each.bound else []
        decided += [f"{counted(each.evicted, 'pod')} evicted"] if each.evicted else []
        why = f"{each.code.value}: {each.sentence}" if each.code is not None else ""
        text = "; ".join(filter(None, (", ".join(decided), why)))
        after = f"+{duration(each.now - first)}"
        lines.add(f"cycle {each.cycle:,}", (after, "dim"), (each.state, _STYLES[each.state]), escaped(text))
    out.print_table(lines)
    if waited := waited_by_code(moments, until):
        parts = ", ".join(f"{duration(seconds)} {code.value}" for code, seconds in waited.items())
        out.print(f"waited {duration(sum(waited.values()))}: {parts}")
