"""``pumice next``: what the next cycle would do, on files, on a snapshot, or in a scheduler that runs."""

from __future__ import annotations

from pathlib import Path

import click

from pumice.cli.answers.served import ask, server_option
from pumice.cli.answers.world import WorldOptions, conf_option, read_world, world_options
from pumice.cli.errors import InputError
from pumice.cli.output import fail_for, print_json


@click.command("next")
@click.argument("files", metavar="FILES…|SNAPSHOT|-", nargs=-1)
@conf_option
@world_options
@server_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def next(  # the command's name
    ctx: click.Context,
    files: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    server: str,
    as_json: bool,
    strict: bool,
) -> None:
    """Say what the next cycle would do: which pods get which node, which are evicted, which jobs are admitted, and why
    the others wait. Nothing is changed.

    \b
    Examples:
      pumice next cluster/ jobs.yaml
      pumice next cycle.pumice --json
      pumice next --server http://127.0.0.1:8080
    """
    if server:
        if files or conf or now is not None or scheduler_name:
            raise InputError("with --server: wanted no files and no policy")
        text, code = ask(server, "/next", [("format", "json" if as_json else "text")])
        click.echo(text, nl=False)
        ctx.exit(code)
    from pumice.answers.next_cycle import next_cycle
    from pumice.answers.world import Trials
    from pumice.cli.answers.next_cycle import described, print_next
    from pumice.runtime.digest import digest_of

    asked = read_world(files, WorldOptions(conf, strict, plugins_dir, now, scheduler_name))
    base = Trials(asked.world, 0).base
    found, digest = next_cycle(base, asked.world.outside), digest_of(asked.world.now, base.decisions)
    if as_json:
        print_json(described(found, digest))
    else:
        print_next(found, digest, asked.world.shown)
    fail_for(ctx, asked.problems)
