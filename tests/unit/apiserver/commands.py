"""``pumice serve`` as a user runs it: a process of its own."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.forked import Forked
from tests.tied import tied

PATIENCE_S = 60
#: What ``pumice`` on the command line is.
PUMICE = [sys.executable, "-c", "from pumice.cli.main import main; main()"]


class Served(Struct, frozen=True):
    url: str
    kubeconfig: Path
    process: Forked

    def stop(self, number: int = signal.SIGINT) -> int:
        """The exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def serving_command(folder: Path, *args: str) -> Iterator[Served]:
    """A server on a free port, stopped by its pid in the end."""
    kubeconfig = folder / "kubeconfig"
    arguments = ["serve", "--port", "0", "--kubeconfig", str(kubeconfig), *args]
    with Forked(arguments, folder) as process, tied(process):
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r" on (https?://\S+);", line):
                yield Served(found[1], kubeconfig, process)
                break
        else:
            raise AssertionError(f"it does not serve: {''.join(said)}")
