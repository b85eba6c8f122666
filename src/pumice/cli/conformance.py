"""``pumice conformance``: do we decide as the references did."""

from __future__ import annotations

import click

from pumice.cli.errors import FAILED
from pumice.cli.output import print_json


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON document: counts, and every case with status and reason."
)
@click.pass_context
def conformance(ctx: click.Context, paths: tuple[str, ...], as_json: bool) -> None:
    """Run the recorded cases at or below each PATH.

    A case passes, fails, is not yet (names what is missing), or is accepted (a decision record says why we differ).
    Exit code 0 when nothing failed, 1 otherwise.

    \b
    Examples:
      pumice conformance ../shared/conformance/volcano
      pumice conformance ../shared/conformance/volcano --json | jq '.cases[] | select(.status == "failed")'
    """
    from pumice.cli.params import require_there
    from pumice.cli.progress import counting
    from pumice.testing.conformance import run_conformance

    require_there(paths)
    with counting("cases") as show:
        report = run_conformance(paths, lambda done, total, result: show(done, total, result.file))
    if as_json:
        print_json(report.to_json())
    else:
        click.echo(report.text())
    ctx.exit(0 if report.ok else FAILED)
