"""What is built from an sdist has the same files as what is built from a checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.tidy import repo


@pytest.mark.long
@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_what_is_built_installs_in_a_clean_environment_and_runs_the_demo(tmp_path: Path, target: str) -> None:
    def done(*command: str) -> str:
        found = subprocess.run(command, cwd=repo.ROOT, capture_output=True, text=True, check=False)
        assert found.returncode == 0, f"{command}: {found.stderr}"
        return found.stdout

    done(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tmp_path / "dist"))
    (built,) = (path for path in (tmp_path / "dist").iterdir() if path.suffix in (".whl", ".gz"))
    done(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    scripts = tmp_path / "venv" / "bin"
    done(str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(built))
    assert "jobs" in done(str(scripts / "pumice"), "simulate", "examples/demo")
    code = "import pumice; print(len(pumice.load('examples/demo').simulate('default', until='10m').jobs))"
    assert int(done(str(scripts / "python"), "-c", code)) > 0


#: Library -> what it reads of a table of jobs, without any other library of these.
READERS = {
    "polars": "polars.DataFrame(jobs).height",
    "pyarrow": "pyarrow.table(jobs).num_rows",
    "pandas": "len(pandas.DataFrame(jobs.to_dict()))",
    "duckdb": "duckdb.sql('select count(*) from jobs').fetchall()[0][0]",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a clean environment with the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    for command in (
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        [sys.executable, "-m", "venv", str(folder / "venv")],
    ):
        subprocess.run(command, cwd=repo.ROOT, check=True, capture_output=True)
    python, (wheel,) = folder / "venv" / "bin" / "python", folder.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, capture_output=True)
    return python


@pytest.mark.long
@pytest.mark.parametrize("library", READERS)
def test_each_library_reads_tables_without_the_others(installed: Path, tmp_path: Path, library: str) -> None:
    install = [installed, "-m", "pip", "install", "--quiet", "--target", tmp_path, library]
    subprocess.run(install, check=True, capture_output=True)
    code = f"""
import sys
import pumice
jobs = pumice.load("examples/demo").simulate("default", until="10m").jobs
assert not {set(READERS)} & set(sys.modules)
import {library}
print(len(jobs), {READERS[library]}, *sorted({set(READERS)} & set(sys.modules)))
"""
    command, paths = [installed, "-c", code], {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=repo.ROOT, env=paths, check=False, capture_output=True, text=True)
    assert done.stdout.split() == ["25", "25", library], done.stderr


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
