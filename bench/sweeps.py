"""Measure a sweep of Philly's first days: how busy its workers are, its memory, and that all engines give equal bytes.

    python -m bench.sweeps --universes 200 --kills 5 --engines local,dask,shards

``busy`` is the share of (wall time × workers) in which a worker ran or waited for a processor, from the kernel's
``schedstat``: on a machine that others use as well, CPU seconds alone would measure the others. ``peak`` is of the
process that shares out; it is to be equal however many universes there are.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec import Struct

from bench.processes import ROOT

_TRACE = ROOT.parent / "shared" / "traces" / "philly-gavel"
_PUMICE = [sys.executable, "-c", "from pumice.cli.main import main; main(prog_name='pumice')", "sweep"]
_LOOK_EVERY_S = 0.2
_BUSY_MIN = 0.9
_CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    size = {"n_workers": int(sys.argv[1]), "threads_per_worker": 1}
    with LocalCluster(**size, host="127.0.0.1", dashboard_address="127.0.0.1:0") as found:
        print(found.scheduler_address, flush=True)
        sys.stdin.read()
"""


class Use(Struct):
    """What a sweep took. Seconds, MB of the process that shares out; ``cpu`` and ``runnable`` of its workers."""

    wall: float = 0.0
    cpu: float = 0.0
    runnable: float = 0.0
    peak: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    asked = [str(options.trace), "--policy", "default", "--nodes", "125x4gpu", "--until", options.until]
    asked += ["--seeds", f"0..{options.universes - 1}", "--shake", "60s"]
    digests: dict[str, str] = {}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for engine in options.engines.split(","):
            out = Path(folder) / engine
            use = {"local": _local, "dask": _dask, "shards": _shards}[engine](asked, out, options)
            digests[engine] = _digest(out)
            print(f"{_line(engine, use, options.universes, options.workers)}, bytes {digests[engine][:16]}", flush=True)
            failed |= engine == "local" and not options.kills and use.runnable < _BUSY_MIN * use.wall * options.workers
    equal = len(set(digests.values())) == 1
    print(f"rows and table: {'equal bytes' if equal else 'DIFFERENT'} ({', '.join(digests)})")
    return int(failed or not equal)


def _local(asked: list[str], out: Path, options: argparse.Namespace) -> Use:
    """Run a sweep in processes; kill the whole of it as often as asked, each time after some more universes."""
    dice, total = Random(options.seed), Use()
    command = [*_PUMICE, *asked, "--workers", str(options.workers), "--out", str(out)]
    for left in range(options.kills, -1, -1):
        already = len(list((out / "universes").glob("*.json"))) if out.is_dir() else 0
        stop_at = already + dice.randint(1, max(options.universes // (options.kills + 2), 1)) if left else None
        _add(total, _run(command, out, stop_at))
    return total


def _dask(asked: list[str], out: Path, options: argparse.Namespace) -> Use:
    script = out.parent / "cluster.py"
    script.write_text(_CLUSTER)
    command = [sys.executable, str(script), str(options.workers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdin is not None and cluster.stdout is not None
        try:
            address = cluster.stdout.readline().strip().removeprefix("tcp://")
            return _run([*_PUMICE, *asked, "--engine", f"dask://{address}", "--out", str(out)], out, None, cluster.pid)
        finally:
            cluster.stdin.close()


def _shards(asked: list[str], out: Path, options: argparse.Namespace) -> Use:
    total, parts = Use(), [str(out.parent / f"part-{number}") for number in range(1, 5)]
    for number, part in enumerate(parts, 1):
        shard = ["--shard", f"{number}/{len(parts)}", "--workers", str(options.workers), "--out", part]
        _add(total, _run([*_PUMICE, *asked, *shard], Path(part), None))
    subprocess.run([*_PUMICE, *asked, "merge", *parts, "--out", str(out)], check=True, capture_output=True)
    return total


def _run(command: list[str], out: Path, stop_at: int | None, beside: int = 0) -> Use:
    """Run to the end, or until so many universes are finished; then kill it. ``beside``: parent of the workers, if they
    are not its children. Raises: CalledProcessError."""
    began, use, workers = time.monotonic(), Use(), dict[int, tuple[float, float]]()
    # A session of its own: its workers end with it.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as found:
        before = {pid: _times(pid) for pid in _children(beside)} if beside else {}
        while found.poll() is None:
            for pid in _children(beside or found.pid):
                workers[pid] = _times(pid) or workers.get(pid, (0.0, 0.0))
            use.peak = max(use.peak, _peak_mb(found.pid))
            if stop_at is not None and len(list((out / "universes").glob("*.json"))) >= stop_at:
                os.kill(found.pid, signal.SIGKILL)
                break
            time.sleep(_LOOK_EVERY_S)
    if found.returncode not in (0, -signal.SIGKILL):
        raise subprocess.CalledProcessError(found.returncode, command)
    use.wall = time.monotonic() - began
    for pid, (cpu, waited) in workers.items():
        cpu_before, waited_before = before.get(pid) or (0.0, 0.0)
        use.cpu += cpu - cpu_before
        use.runnable += cpu + waited - cpu_before - waited_before
    return use


def _add(total: Use, use: Use) -> None:
    total.wall, total.cpu = total.wall + use.wall, total.cpu + use.cpu
    total.runnable, total.peak = total.runnable + use.runnable, max(total.peak, use.peak)


def _children(pid: int) -> list[int]:
    """Return the children of a process that simulate: not Python's tracker of shared resources."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"resource_tracker" not in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def _times(pid: int) -> tuple[float, float] | None:
    """Return the seconds in which the busiest thread of a process ran, and waited for a processor. None: it has
    ended."""
    try:
        threads = [(each / "schedstat").read_text().split() for each in Path(f"/proc/{pid}/task").iterdir()]
        ran, waited = max((int(each[0]), int(each[1])) for each in threads)
    except (OSError, ValueError):
        return None
    return ran / 1e9, waited / 1e9


def _peak_mb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _digest(out: Path) -> str:
    found = hashlib.sha256((out / "table.arrow").read_bytes())
    for path in sorted((out / "universes").glob("*.json")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _line(engine: str, use: Use, universes: int, workers: int) -> str:
    granted = use.wall * workers
    return (
        f"{engine}: {universes} universes, {use.wall:.1f} s wall, {use.cpu:.1f} CPU s of workers "
        f"({100 * use.cpu / granted:.0f} % of {workers} cores), busy {100 * use.runnable / granted:.1f} %, "
        f"peak {use.peak:.0f} MB"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sweeps", description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=Path, default=_TRACE, help="input of pumice sweep (default: philly-gavel)")
    parser.add_argument("--universes", type=int, default=200, metavar="N")
    parser.add_argument("--until", default="7d", metavar="T")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="kill the local sweep so often, and go on")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments of kills")
    parser.add_argument("--engines", default="local,dask,shards", metavar="E,…")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
