"""``pumice conformance``: do we decide as the references did."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

import pumice
from pumice.cli.errors import FAILED, InputError
from pumice.cli.output import print_json


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON document: counts, and every case with status and reason."
)
@click.pass_context
def conformance(ctx: click.Context, paths: tuple[str, ...], as_json: bool) -> None:
    """Run the recorded cases at or below each PATH.

    A case passed, failed, is "not yet" (the output names what is missing), or is accepted (a decision record explains
    the difference). The exit code is 0 if no case failed, else 1. Needs a source checkout with the package installed
    from it.

    \b
    Examples:
      pumice conformance ../shared/conformance/volcano
      pumice conformance ../shared/conformance/volcano --json | jq '.cases[] | select(.status == "failed")'
    """
    from pumice.cli.params import require_there
    from pumice.cli.progress import counting

    runner = _runner()
    require_there(paths)
    with counting("cases") as show:
        report = runner.run_conformance(paths, lambda done, total, result: show(done, total, result.file))
    if as_json:
        print_json(report.to_json())
    else:
        click.echo(report.text())
    ctx.exit(0 if report.ok else FAILED)


def _runner() -> ModuleType:
    """Return ``tests.conformance.runner`` of the checkout that contains this package. Raises: InputError if there is
    none."""
    checkout = Path(pumice.__file__).parents[2]
    if not (checkout / "tests" / "conformance" / "runner" / "__init__.py").is_file():
        raise InputError(
            "the runner of recorded cases is part of the source checkout, not of the wheel: "
            "run this from a checkout with the package installed from it (make setup)"
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return import_module("tests.conformance.runner")
