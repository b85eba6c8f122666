"""The recipe of the image: what it copies is there, what it installs is pinned, and it does not run as root."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RECIPE = (ROOT / "deploy" / "image" / "Containerfile").read_text()


def copied() -> set[str]:
    lines = re.findall(r"^COPY (?!--from)(.*)$", RECIPE, re.MULTILINE)
    return {source for line in lines for source in line.split()[:-1]}


def test_what_is_copied_is_there() -> None:
    missing = {source for source in copied() if not (ROOT / source).exists()}
    assert copied() and not missing


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
