"""A plain installation has no packages of an extra: what works without them, and what says that it does not."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pumice.cli.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[3]
#: Modules that no package of a plain installation brings; the tools for development have some of them.
NOT_THERE = ("aiohttp", "cel_expr_python", "highspy", "kubernetes", "prometheus_client", "re2", "rich")
FEW_LINES = f"import sys\nsys.modules.update(dict.fromkeys({NOT_THERE!r}))\n"
COMMAND = FEW_LINES + "from pumice.cli.main import main\nmain(prog_name='pumice')"
#: Rooms that a notebook, or a command on files, may import any module of.
ROOMS = (
    *("model", "algorithms", "columns", "state", "framework", "placing", "volcano", "kai", "sim"),
    *("reasons", "testing", "report", "cli", "api", "cycle"),
)
IMPORT_ROOMS = f"""
from importlib import import_module
from pkgutil import walk_packages
for room in {ROOMS!r}:
    found = import_module("pumice." + room)
    for module in walk_packages(getattr(found, "__path__", []), found.__name__ + "."):
        import_module(module.name)
"""
#: Module of a package -> the package's name, where they differ.
PACKAGES = {"prometheus_client": "prometheus-client", "re2": "google-re2"}


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_rooms_for_files_and_notebooks_need_no_extra() -> None:
    result = run(FEW_LINES + IMPORT_ROOMS)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (("simulate", "examples/demo"), 0, "24 of 25 done"),
        (("schedule", "examples/debug-gang"), 0, "6 nodes, 1 job: 0 bound"),
        (("check-conf", "examples/spread.conf"), 0, "examples/spread.conf: OK"),
        (("bench", "--scenario", "gang", "--nodes", "4", "--pods", "4", "--gang", "2"), 0, "4 of 4 pods"),
        (("fuzz", "--seeds", "0..1"), 0, ""),
        (("run", "--help"), 0, "Usage: pumice run"),
        (("serve", "--help"), 0, "Usage: pumice serve"),
        (("log-level", "--help"), 0, "Usage: pumice log-level"),
    ],
)
def test_commands_on_files_and_help_need_no_extra(arguments: tuple[str, ...], code: int, shown: str) -> None:
    result = run(COMMAND, *arguments)
    assert result.returncode == code, result.stderr
    assert shown in result.stdout


@pytest.mark.parametrize(("command", "extra"), [("run", "run"), ("log-level", "run"), ("serve", "serve")])
def test_command_names_the_extra_that_is_missing(command: str, extra: str) -> None:
    result = run(COMMAND, command)
    missing = ", ".join(EXTRAS[extra])
    sentence = f"pumice {command} needs packages that are not installed ({missing}): pip install 'pumice[{extra}]'"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"error: {sentence}\n")


def test_extras_bring_the_modules_that_their_commands_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def packages(extra: str) -> list[str]:
        found = []
        for requirement in extras[extra]:
            inner = requirement.partition("pumice[")[2].rstrip("]")
            found += packages(inner) if inner else [requirement.partition(">=")[0]]
        return found

    for extra, modules in EXTRAS.items():
        assert sorted(packages(extra)) == sorted(PACKAGES.get(module, module) for module in modules)
