"""The recipe of the image: what it copies is there, what it installs is pinned, and it does not run as root."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[3]
RECIPE = (ROOT / "deploy" / "image" / "Containerfile").read_text()


def copies() -> list[tuple[str, str]]:
    """What goes where, below the working folder of the first stage."""
    lines = re.findall(r"^COPY (?!--from)(.*)$", RECIPE, re.MULTILINE)
    return [(source, line.split()[-1]) for line in lines for source in line.split()[:-1]]


def test_what_is_copied_makes_the_wheel(tmp_path: Path) -> None:
    """A recipe cannot be built everywhere; that nothing is missing from it can be seen without."""
    for source, place in copies():
        found, to = ROOT / source, tmp_path / place
        if found.is_dir():
            shutil.copytree(found, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(found, to)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    crds = {f"pumice/crds/{path.name}" for path in (ROOT / "deploy" / "crds").glob("*.yaml")}
    crds |= {f"pumice/crds-kai/{path.name}" for path in (ROOT / "deploy" / "kai" / "crds").glob("*.yaml")}
    assert crds | {"pumice/cli/main.py"} <= names


def test_every_package_is_pinned_by_hash() -> None:
    installs = re.findall(r"pip install ([^&\\\n]*)", RECIPE)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)
    pinned = (ROOT / "deploy" / "image" / "requirements.txt").read_text()
    lines = [line for line in pinned.replace("\\\n", " ").splitlines() if line and not line.lstrip().startswith("#")]
    assert lines and all(re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert any(line.startswith("kubernetes==") for line in lines), "pumice run reads kubeconfigs with it"


def test_it_does_not_run_as_root() -> None:
    assert re.findall(r"^USER (\S+)$", RECIPE, re.MULTILINE) == ["65532:65532"]
    assert RECIPE.index("USER") > RECIPE.rindex("FROM")
