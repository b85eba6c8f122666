"""Measure what a Python user waits for: the import, tables of a year as frames, a comparison, and the first frame.

    python -m bench.library                  all but the first frame
    python -m bench.library --only clone     a clone, its environment and a frame of the demo, as a new user has them

Each line has the median and the limit; the code is 1 if one was missed. CPU seconds, except ``clone``, which waits for
the network and is wall time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from bench.processes import ROOT

_TRACES = ROOT.parent / "shared" / "traces"
_IMPORT = "from time import process_time; t = process_time(); import pumice; print(process_time() - t)"
_FRAME = (
    "import pumice, polars; print(polars.DataFrame(pumice.load('examples/demo').simulate('default', until='1h').jobs))"
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.library", description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, default=_TRACES, metavar="DIR")
    parser.add_argument("--only", choices=("import", "frames", "small", "compare", "clone"))
    parser.add_argument("--until", metavar="T", help="of the year whose tables are read")
    options = parser.parse_args(arguments)
    measures: dict[str, Callable[[], list[bool]]] = {
        "import": _import,
        "frames": lambda: _frames(options.traces, options.until),
        "small": _small,
        "compare": lambda: _compare(options.traces),
        "clone": _clone,
    }
    chosen = [options.only] if options.only else ["import", "frames", "small", "compare"]
    return int(not all(reached for name in chosen for reached in measures[name]()))


def _import() -> list[bool]:
    command = [sys.executable, "-c", _IMPORT]
    times = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(9)]
    return [_line("import pumice", 1000 * statistics.median(times), 50, "CPU ms")]


def _frames(traces: Path, until: str | None) -> list[bool]:
    import pumice

    sys.path.insert(0, str(ROOT / "examples" / "notebooks"))
    from fcfs import FCFS, MACHINE

    cluster = pumice.load(f"swf:{traces}/theta-alcf/theta_2022.swf", nodes=MACHINE)
    run = cluster.simulate(FCFS, until=until, events=False)
    reached = []
    for library in ("polars", "pandas"):
        if find_spec(library) is None:
            print(f"frames: {library} is not installed")
            continue
        reached.append(_frames_of(run, library))
    print("pyarrow:", "imported" if "pyarrow" in sys.modules else "not imported")
    return reached


def _frames_of(run: object, library: str) -> bool:
    import numpy as np  # noqa: F401  # no part of the time

    frame = __import__(library).DataFrame
    names = ("jobs", "queues", "nodes")
    times = []
    for _ in range(5):
        began = time.process_time()
        frames = [_frame(frame, getattr(run, name), library) for name in names]
        times.append(time.process_time() - began)
    rows = ", ".join(f"{len(found)} {name}" for name, found in zip(names, frames, strict=True))
    return _line(f"{library}: {rows}", 1000 * statistics.median(times), 100, "CPU ms")


def _frame(frame: Callable[[object], list[object]], table: object, library: str) -> list[object]:
    return frame(table if library == "polars" else table.to_dict())  # type: ignore[attr-defined]


def _small() -> list[bool]:
    """Measure what a cell takes to compare two policies on the demo, after the cells before it have loaded NumPy."""
    import numpy as np  # noqa: F401

    import pumice

    demo = ROOT / "examples" / "demo"
    times = []
    for _ in range(2):  # the second has all modules
        began = time.process_time()
        found = pumice.compare("default", str(demo / "volcano-scheduler.conf"), str(demo), until="1h")
        times.append(time.process_time() - began)
    assert len(found.universes) and not found.same
    what = "two policies on the demo, 1 hour, 5 universes"
    return [_line(f"{what}, first", times[0], 3, "CPU s"), _line(f"{what}, again", times[1], 3, "CPU s")]


def _compare(traces: Path) -> list[bool]:
    import pumice

    sys.path.insert(0, str(ROOT / "examples" / "notebooks"))
    from fcfs import FCFS

    began = time.process_time()
    found = pumice.compare(FCFS, "default", str(traces / "philly-gavel"), nodes="125x4gpu", until="7d")
    took = time.process_time() - began
    assert len(found.figures)
    return [_line("a policy of one's own against the default, philly, 7 days, 5 universes", took, 60, "CPU s")]


def _clone() -> list[bool]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        python = f"{folder}/venv/bin/python"
        for command in (
            ["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", f"{folder}/pumice"],
            [sys.executable, "-m", "venv", f"{folder}/venv"],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{folder}/pumice", "polars"],
            [python, "-c", _FRAME],
        ):
            subprocess.run(command, check=True, cwd=f"{folder}/pumice" if command[0] == python else folder)
        return [_line("clone to the first frame", time.monotonic() - began, 180, "wall s")]


def _line(what: str, found: float, limit: float, unit: str) -> bool:
    print(f"{what}: {found:.3g} {unit}, at most {limit}{'' if found <= limit else ' MISSED'}", flush=True)
    return found <= limit


if __name__ == "__main__":
    sys.exit(main())
