"""Running whatever lies below some paths: cases, function tables, and what is of another dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from traceback import extract_tb

from pumice.framework.plugin.registry import Registry
from pumice.runtime.policy.languages import builtin_registry
from tests.conformance.runner.accepted import OPEN, why_accepted
from tests.conformance.runner.actions import run_action, run_cycles
from tests.conformance.runner.calls import run_calls
from tests.conformance.runner.case import Case, case_of, read_yaml
from tests.conformance.runner.confirmed import run_confirmed
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.kai import FORMAT_PREFIX, run_kai_case
from tests.conformance.runner.report import Report
from tests.conformance.runner.result import CaseResult, NotYet, Status, Unusable
from tests.conformance.tables.table import TableStatus, run_table

#: Called after each case: how many are done, of how many, and what became of it.
Progress = Callable[[int, int, CaseResult], None]

NOT_APPLICABLE = "not applicable: "
_TABLES = "tables"
_SUFFIXES = (".yaml", ".yml")
_KINDS: dict[str, Callable[[Case, Registry], Differences]] = {
    "action": run_action,
    "confirmedCycles": run_confirmed,
    "cycles": run_cycles,
    "fn": run_calls,
}


def _nobody(done: int, total: int, result: CaseResult) -> None:
    """An observer that does nothing."""


def run_conformance(paths: Iterable[str | Path], progress: Progress = _nobody) -> Report:
    """Run every case file at or below the paths, in order of their names.

    Raises: FileNotFoundError for a path that is not there or has no case file.
    """
    files = list(dict.fromkeys(file for path in paths for file in case_files(Path(path))))
    registry = builtin_registry()
    results = []
    for file in files:
        results.append(run_file(file, registry))
        progress(len(results), len(files), results[-1])
    return Report(tuple(results))


def case_files(path: Path) -> Iterator[Path]:
    """The file itself, or the case files below a folder."""
    if path.is_file():
        yield path
        return
    found = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file()) if path.is_dir() else []
    if not found:
        raise FileNotFoundError(f"{path}: {'has no case files' if path.is_dir() else 'is not there'}")
    yield from found


def file_name(path: Path) -> str:
    """How the index of its folder names a case: ``folder/file.yaml``, for a table ``tables/folder/file.yaml``."""
    folders = path.absolute().parts[-3:-1]
    return "/".join([*(folders if folders[0] == _TABLES else folders[-1:]), path.name])


def run_file(path: Path, registry: Registry) -> CaseResult:
    """One case. Whatever is raised, in Pumice or in the runner, is its failure."""
    file = file_name(path)
    if file.startswith(f"{_TABLES}/"):
        return _run_table(file, path)
    name, commit = path.stem, ""
    try:
        document = read_yaml(path)
        commit = _commit_of(document)
        name = str(document.get("name", name)) if isinstance(document, dict) else name
        if isinstance(document, dict) and str(document.get("format", "")).startswith(FORMAT_PREFIX):
            found = run_kai_case(document, registry)
        else:
            found = _run_volcano_case(case_of(file, document), registry)
    except NotYet as missing:
        return CaseResult(file, name, Status.NOT_YET, str(missing))
    except Unusable as problem:
        return CaseResult(file, name, Status.FAILED, str(problem))
    except Exception as error:
        return CaseResult(file, name, Status.FAILED, f"raised {type(error).__name__}: {error} ({_place(error)})")
    return _verdict(file, commit, name, found)


def _run_volcano_case(case: Case, registry: Registry) -> Differences:
    if case.kind not in _KINDS:
        raise NotYet(f"kind {case.kind}")
    return _KINDS[case.kind](case, registry)


def _commit_of(document: object) -> str:
    source = document.get("source") if isinstance(document, dict) else None
    return str(source.get("commit", "")) if isinstance(source, dict) else ""


def _verdict(file: str, commit: str, name: str, found: Differences) -> CaseResult:
    if not found:
        return CaseResult(file, name, Status.PASSED)
    if why := why_accepted(file, commit):
        return CaseResult(file, name, Status.ACCEPTED, why)
    if why := OPEN.get((file, commit), ""):
        return CaseResult(file, name, Status.NOT_YET, why)
    return CaseResult(file, name, Status.FAILED, found.text)


def _run_table(file: str, path: Path) -> CaseResult:
    try:
        result = run_table(path)
    except Exception as error:
        return CaseResult(file, path.stem, Status.FAILED, f"cannot be read: {type(error).__name__}: {error}")
    match result.status:
        case TableStatus.NOT_APPLICABLE:
            return CaseResult(file, path.stem, Status.ACCEPTED, NOT_APPLICABLE + result.reason)
        case TableStatus.FAILED if why := why_accepted(file, ""):
            return CaseResult(file, path.stem, Status.ACCEPTED, why)
    return CaseResult(file, path.stem, Status(result.status.value), result.reason)


def _place(error: Exception) -> str:
    """Return where an error was raised, for the report."""
    frame = extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"
