"""What the rules look at: the files that a commit would hold, read once."""

import ast
import functools
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "pumice"
_MADE_BY_TOOLS = {".git", ".venv", "build", "dist", "node_modules", "__pycache__", ".hypothesis"}


@functools.cache
def committable() -> tuple[Path, ...]:
    """Every file that is committed or would be by `git add .`, sorted; without git, all but what tools made."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
        found = {ROOT / name for name in names if name}
    else:
        found = {p for p in ROOT.rglob("*") if not made_by_tools(p)}
    return tuple(sorted(p for p in found if p.is_file()))


def made_by_tools(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part in _MADE_BY_TOOLS or part.endswith(("_cache", ".egg-info")) for part in parts)


def files(*suffixes: str, under: str = ".") -> Iterator[Path]:
    """Committable files with one of the suffixes (all, if none is named), in a folder of the repository."""
    folder = ROOT / under
    for path in committable():
        if path.is_relative_to(folder) and (not suffixes or path.suffix in suffixes):
            yield path


@functools.cache
def text(path: Path) -> str:
    """The file's text; the empty string for a file that is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


def name(path: Path) -> str:
    """The path as messages and tables write it: from the root of the repository, with slashes."""
    return path.relative_to(ROOT).as_posix()


def listed(advice: str, found: Iterable[str]) -> str:
    """A failure as people want it: what to do, then every place."""
    return "\n  ".join((advice, *found))
