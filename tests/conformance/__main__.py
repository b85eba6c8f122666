"""``python -m tests.conformance``: run ``pumice conformance`` over the listed folders, one process per folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.conformance.folders import FOLDERS
from tests.conformance.runner import Status

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PUMICE_SHARED") or ROOT.parent / "shared")
PUMICE = str(Path(sys.executable).with_name("pumice"))


def main(cases: Path = SHARED / "conformance", folders: Mapping[str, Mapping[Status, int]] = FOLDERS) -> int:
    """Return 0 if every folder has the counts that are listed and no case failed, or if there are no cases; else 1."""
    if not cases.is_dir():
        print(
            f"conformance: SKIPPED, there is no folder {cases}: put `shared` beside the checkout or set PUMICE_SHARED"
        )
        return 0
    width = max(map(len, folders))
    print(f"{'folder':<{width}} " + " ".join(f"{status.value:>8}" for status in Status), flush=True)
    problems = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder, ended in zip(folders, pool.map(_run, (cases / folder for folder in folders)), strict=True):
            try:
                report = json.loads(ended.stdout)
            except ValueError:
                problems.append(f"{folder}: no report, exit code {ended.returncode}: {ended.stderr.strip()}")
                continue
            print(f"{folder:<{width}} " + " ".join(f"{report[status.value]:>8}" for status in Status), flush=True)
            problems += [f"{folder}: {problem}" for problem in _problems(report, folders[folder])]
    for problem in problems:
        print(f"conformance: {problem}", file=sys.stderr)
    return int(bool(problems))


def _run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PUMICE, "conformance", path, "--json"], capture_output=True, text=True, check=False)


def _problems(report: Mapping[str, Any], listed: Mapping[Status, int]) -> Iterator[str]:
    """Every failed case, and the cases of each status whose count is not the listed one."""
    named = [Status.FAILED]
    for status, count in listed.items():
        if report[status.value] != count:
            yield f"{status.value}: found {report[status.value]}, wanted {count} (tests/conformance/folders.py)"
            named.append(status)
    for case in report["cases"]:
        if case["status"] in [status.value for status in named]:
            yield f"{case['status']}: {case['file']}: {case['reason']}"


if __name__ == "__main__":
    sys.exit(main())
