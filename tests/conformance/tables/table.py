"""The reference's function tables: files of rows, each with inputs and the answer that Volcano's own test wants.

A check takes one row and answers None where Pumice agrees, else one line that says how it does not. Modules with checks
register them with ``@table`` and are named in CHECK_MODULES. Source: ``../shared/conformance/volcano/README.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml
from msgspec import Struct

Row = Mapping[str, Any]
Check = Callable[..., str | None]  # of a row
_C = TypeVar("_C", bound=Callable[..., str | None])
NOTHING: Mapping[str, str] = MappingProxyType({})

CHECK_MODULES = (
    "tests.conformance.tables.api",
    "tests.conformance.tables.books",
    "tests.conformance.tables.claims",
    "tests.conformance.tables.cooldown",
    "tests.conformance.tables.devices",
    "tests.conformance.tables.extender",
    "tests.conformance.tables.fit",
    "tests.conformance.tables.jobs",
    "tests.conformance.tables.npus",
    "tests.conformance.tables.numa",
    "tests.conformance.tables.placing",
    "tests.conformance.tables.plugins",
    "tests.conformance.tables.shell",
    "tests.conformance.tables.strategies",
    "tests.conformance.tables.task_groups",
    "tests.conformance.tables.topology",
    "tests.conformance.tables.usage",
)

#: ``folder/TestName.yaml`` -> its check. Filled by ``@table``.
TABLES: dict[str, Check] = {}
#: ``folder/TestName.yaml`` -> keys in what its rows want, at any depth, that its check does not see -> why it need not.
UNREAD: dict[str, Mapping[str, str]] = {}
WANTED: dict[str, tuple[str, ...]] = {}
WHOLE: set[str] = set()

_NO_ERROR = "an error where Volcano's maps of nodes and jobs disagree; Pumice has one place for a task"
_TASKS_LOST = "the recording left out tasks without fields, so the counts that the rows want cannot be derived"
_FUNCTIONS = "the rows hold Go functions"
_TYPE_LOST = "the rows are about a wrong Go type, which the recording lost; without it they contradict each other"
_NO_CLOCK = "reads how long a filter may take; a cycle has no clock, Pumice bounds how much is tried, see decision 0021"
_TIME = "measures how long it takes; the row wants no values"
#: ``folder/TestName.yaml`` -> the detail of Go, or of the recording, that Pumice has no counterpart of.
NOT_APPLICABLE: dict[str, str] = {
    "api/TestBuildHyperNode.yaml": "tests the builder of Volcano's own test objects",
    "api/TestFitError.yaml": "an error for one task on one node; Pumice counts reasons over nodes, see TestFitErrors",
    "api/TestHyperNodesInfo_GetRegexSelectorLeafHyperNodes.yaml": "an index for events; Pumice builds the tree anew",
    "api/TestHyperNodesInfo_NodeRegexOrLabelMatchHyperNode.yaml": "the recording left out the hypernodes of the rows",
    "api/TestSubJobInfo_IsPipelined.yaml": _TASKS_LOST,
    "api/TestSubJobInfo_IsReady.yaml": _TASKS_LOST,
    "cache/TestExecutePreBinds.yaml": _FUNCTIONS,
    "cache/TestGetAvailableNodesFromShard.yaml": "the recording left out the shards of the rows",
    "cache/TestNewDefaultAndRootQueue.yaml": _FUNCTIONS,
    "cache/TestNodeOperation.yaml": "the recording left out the caches that the rows want",
    "cache/TestRefreshNodeShards_AvailableNodesCalculation.yaml": "counts calls that wait for a running session; "
    "Pumice takes events in between cycles only",
    "cache/TestSchedulerCache_AddPodGroupV1beta1.yaml": _TYPE_LOST,
    "cache/TestSchedulerCache_AddQueueV1beta1.yaml": _TYPE_LOST,
    "cache/TestSchedulerCache_DeletePodGroupV1beta1.yaml": _TYPE_LOST,
    "cache/TestSchedulerCache_DeleteQueueV1beta1.yaml": _TYPE_LOST,
    "cache/TestSchedulerCache_UpdatePod.yaml": _NO_ERROR,
    "cache/TestSchedulerCache_UpdatePodGroupV1beta1.yaml": _TYPE_LOST,
    "cache/TestSchedulerCache_UpdateQueueV1beta1.yaml": _TYPE_LOST,
    "cache/TestSchedulerCache_updateTask.yaml": _NO_ERROR,
    "framework/TestGetPluginName.yaml": "names Go plugins by their .so file; a Pumice plugin says its name itself",
    "plugins-network-topology-aware/Test_batchNodeOrderFnForNormalPods.yaml": _TIME,
    "plugins-network-topology-aware/Test_initHyperNodeResourceCache.yaml": _TIME,
    "plugins-predicates/TestBatchNodeOrderRunsPreScorePlugins.yaml": "tests the order of calls to Go test doubles",
    "plugins-predicates/TestInitPlugin.yaml": "lists at which of kube-scheduler's points its Go plugins are called; "
    "Pumice's filters are its own and are called at its own points",
    "plugins-predicates/TestSetUpDynamicResourcesArgs_OverideSeconds.yaml": _NO_CLOCK,
    "plugins-predicates/TestSetUpVolumeBindingArgs.yaml": "reads how long a bind may wait, and a shape for"
    " scores by storage capacity, which Volcano has off; Pumice has neither, see decision 0021",
    "plugins-resource-strategy-fit/TestResourceStrategyFitPlugin_OnSessionOpen.yaml": "the row wants nothing",
    "plugins-numaaware/TestNuma_OnSessionClose.yaml": "the recording left out what the mocks of the rows hold",
    "plugins-util-k8s/TestSnapshot.yaml": "reads back from a Go struct what it was made of",
    "plugins-util-k8s/TestSnapshot_AddOrUpdateNodes.yaml": _FUNCTIONS,
    "plugins-util-k8s/TestSnapshot_DeleteNode.yaml": _FUNCTIONS,
    "plugins-util-k8s/TestSnapshot_RemoveDeletedNodesFromSnapshot.yaml": _FUNCTIONS,
    "plugins-util-k8s/TestUtilSwapDelete.yaml": _FUNCTIONS,
    "plugins-util-nodescore/TestCalculatePluginScore.yaml": _FUNCTIONS,
    "util/TestNewFakeBinder.yaml": "tests the channel of a Go test double",
    "util/TestNewFakeEvictor.yaml": "tests the channel of a Go test double",
    "util/TestNumFeasibleNodesToFind.yaml": "a sample of nodes to look at; Pumice looks at all, see decision 0007",
    "util/TestPredicateNodes.yaml": _FUNCTIONS,
    "util/TestSelectBestNodes.yaml": "of Volcano's agent scheduler, another program",
}

#: How the name of a table begins -> what its check needs. The longest that fits counts.
_NEEDS: dict[str, str] = {
    "cache/TestAddUnassignedNumaPods": "NUMA information of nodes",
    "cache/TestSchedulerCache_SyncNode": "a scheduler that sees labelled nodes only",
}


class TableStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_YET = "not_yet"
    NOT_APPLICABLE = "not_applicable"


class TableResult(Struct, frozen=True):
    """How one table fared. ``reason`` is empty only where it passed; ``rows`` is how many rows the table has."""

    file: str
    status: TableStatus
    reason: str
    rows: int


def table(
    *files: str, unread: Mapping[str, str] = NOTHING, wants: tuple[str, ...] = (), whole: bool = False, **fixed: Any
) -> Callable[[_C], _C]:
    """Registers a check for these files; ``fixed`` are keyword arguments of the check that the files imply.

    ``whole``: the check is given all rows of its table, too, as ``rows``.
    ``wants``: columns that say what is wanted and whose names do not show it.
    ``unread``: keys in what a row wants, at any depth, that the check does not see, and why it need not.
    Raises: ValueError where a file has an entry already.
    """

    def register(check: _C) -> _C:
        for file in files:
            if file in TABLES or file in NOT_APPLICABLE:
                raise ValueError(f"table {file} has two entries")
            own = partial(check, **fixed)
            TABLES[file] = partial(_without, own, unread) if unread else own
            UNREAD[file], WANTED[file] = unread, wants
            if whole:
                WHOLE.add(file)
        return check

    return register


def is_expectation(column: str) -> bool:
    """Whether a column of this name says what is wanted."""
    return column.lower().startswith(("expect", "want", "got", "result", "delta"))


def _without(check: Check, keys: Container[str], row: Row) -> str | None:
    return check({name: _strip(value, keys) if is_expectation(name) else value for name, value in row.items()})


def _strip(value: Any, keys: Container[str]) -> Any:
    """The value without these keys, at any depth."""
    if isinstance(value, dict):
        return {key: _strip(part, keys) for key, part in value.items() if key not in keys}
    return [_strip(part, keys) for part in value] if isinstance(value, list) else value


def run_table(path: Path) -> TableResult:
    """Compares every row of the table at ``…/folder/TestName.yaml``."""
    file = f"{path.parent.name}/{path.name}"
    rows = _read_rows(path)
    check = load_checks().get(file)
    if file in NOT_APPLICABLE:
        return TableResult(file, TableStatus.NOT_APPLICABLE, NOT_APPLICABLE[file], len(rows))
    if check is None:
        return TableResult(file, TableStatus.NOT_YET, f"no check yet; it needs {_need(file)}", len(rows))
    if not rows:
        return TableResult(file, TableStatus.FAILED, "the table has no rows", 0)
    if file in WHOLE:
        check = partial(check, rows=rows)
    problems = [f"{_name(i, row)}: {problem}" for i, row in enumerate(rows) if (problem := _compare(check, row))]
    if problems:
        return TableResult(file, TableStatus.FAILED, f"{len(problems)} of {len(rows)} rows; {problems[0]}", len(rows))
    return TableResult(file, TableStatus.PASSED, "", len(rows))


def load_checks() -> Mapping[str, Check]:
    """TABLES, once every module that registers checks has been imported."""
    for module in CHECK_MODULES:
        import_module(module)
    return TABLES


def disagreement(found: object, wanted: object) -> str | None:
    """None where both are the same, else the line that a check answers."""
    return None if found == wanted else f"found {found!r}, wanted {wanted!r}"


def difference(found: Any, wanted: Any, where: str = "") -> str | None:
    """None where both are the same, else the first place that differs in nested mappings."""
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        problem = disagreement(found, wanted)
        return f"{where}: {problem}" if problem and where else problem
    for key in sorted({*found, *wanted}, key=str):
        problem = difference(found.get(key), wanted.get(key), f"{where}.{key}" if where else str(key))
        if problem:
            return problem
    return None


def _compare(check: Check, row: Row) -> str | None:
    """The check's answer. Whatever is raised, in Pumice or in the check, is a disagreement of this row."""
    try:
        return check(row)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


def _read_rows(path: Path) -> list[Row]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rows: list[Row] = yaml.load(path.read_text(encoding="utf-8"), loader)["rows"]
    return rows


def _name(index: int, row: Row) -> str:
    return f"row {index} ({row['name']})" if "name" in row else f"row {index}"


def _need(file: str) -> str:
    known = [start for start in _NEEDS if file.startswith(start)]
    if known:
        return _NEEDS[max(known, key=len)]
    kind, _, part = file.partition("/")[0].partition("-")
    return f"{kind.removesuffix('s')} {part}".strip()
