"""What is built from an sdist has the same files as what is built from a checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.tidy import repo


@pytest.mark.slow
def test_an_sdist_gives_the_wheel_of_the_checkout(tmp_path: Path) -> None:
    def built(folder: Path, target: str, out: Path) -> Path:
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        (found,) = (path for path in out.iterdir() if path.suffix in (".whl", ".gz"))
        return found

    with tarfile.open(built(repo.ROOT, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheels = built(repo.ROOT, "wheel", tmp_path / "a"), built(unpacked, "wheel", tmp_path / "b")
    names = [sorted(zipfile.ZipFile(wheel).namelist()) for wheel in wheels]
    assert names[0] == names[1] and {"pumice/crds/queues.yaml", "pumice/py.typed"} <= set(names[0])
