"""The reference's function tables: files of rows, each with inputs and the answer that Volcano's own test wants.

A check takes one row and answers None where Pumice agrees, else one line that says how it does not. Modules with checks
register them with ``@table`` and are named in CHECK_MODULES. Source: ``../shared/conformance/volcano/README.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import yaml

Row = Mapping[str, Any]
Check = Callable[[Row], str | None]
_C = TypeVar("_C", bound=Callable[..., str | None])

CHECK_MODULES = ("pumice.testing.tables_api", "pumice.testing.tables_topology")

#: ``folder/TestName.yaml`` -> its check. Filled by ``@table``.
TABLES: dict[str, Check] = {}

_TASKS_LOST = "the recording left out tasks without fields, so the counts that the rows want cannot be derived"
#: ``folder/TestName.yaml`` -> the detail of Go, or of the recording, that Pumice has no counterpart of.
NOT_APPLICABLE: dict[str, str] = {
    "api/TestBuildHyperNode.yaml": "tests the builder of Volcano's own test objects",
    "api/TestHyperNodesInfo_GetRegexSelectorLeafHyperNodes.yaml": "an index for events; Pumice builds the tree anew",
    "api/TestHyperNodesInfo_NodeRegexOrLabelMatchHyperNode.yaml": "the recording left out the hypernodes of the rows",
    "api/TestSubJobInfo_IsPipelined.yaml": _TASKS_LOST,
    "api/TestSubJobInfo_IsReady.yaml": _TASKS_LOST,
    "framework/TestGetPluginName.yaml": "names Go plugins by their .so file; a Pumice plugin says its name itself",
    "util/TestNewFakeBinder.yaml": "tests the channel of a Go test double",
    "util/TestNewFakeEvictor.yaml": "tests the channel of a Go test double",
    "util/TestPredicateNodes.yaml": "the rows hold Go functions",
}

#: How the name of a table begins -> what its check needs. The longest that fits counts.
_NEEDS: dict[str, str] = {
    "actions-allocate/TestValidateNomination": "the allocate action's look at a nominated node",
    "api-devices-": "shared devices",
    "api/TestAddTaskInfo": "jobs, their sub-jobs and the sums over their tasks",
    "api/TestCheckNumaPodAssigned": "NUMA information of nodes",
    "api/TestDeleteTaskInfo": "jobs, their sub-jobs and the sums over their tasks",
    "api/TestFitError": "fit errors and their texts",
    "api/TestGetElasticResources": "jobs and the sums over their tasks",
    "api/TestGetGPUIndex": "shared devices",
    "api/TestGetLCAHyperNode": "the HyperNode tree",
    "api/TestGetMembers": "the HyperNode tree",
    "api/TestHyperNodesInfo_": "the HyperNode tree",
    "api/TestJobInfo": "jobs and the counts of their tasks",
    "api/TestNodeInfo_": "the books of a node",
    "api/TestParseMinMemberInfoChanged": "jobs and the minimum of each role",
    "api/TestTaskInfoPodAnnotations": "the annotations that a task gathers before it is bound",
    "api/TestTaskSchedulingReason": "fit notes and their texts",
    "cache/": "the store's handling of events",
    "framework/TestAdjustNetworkTopologySpec": "the session's topology rules",
    "framework/TestConvertSoftToHardTopology": "the session's topology rules",
    "framework/TestFilterOutPreemptMayNotHelpNodes": "the choice of nodes on which preemption may help",
    "framework/TestGetPodGroupPhase": "the phase of a PodGroup when a session closes",
    "framework/TestSession_adjustNetworkTopologySpec": "the session's topology rules",
    "framework/TestStatementHasEvictions": "statements",
    "plugins/": "the default of each plugin switch",
    "plugins-numaaware": "plugin numaaware",
    "plugins-util": "what plugins share",
    "util/TestFindHyperNodeForNode": "the HyperNode tree",
    "util/TestFindJobTaskNumOfHyperNode": "the HyperNode tree",
    "util/TestGetHyperNodeList": "the HyperNode tree",
    "util/TestGetPredicatedNodeByShard": "node shards",
    "util/TestNumFeasibleNodesToFind": "a bound on how many nodes are looked at",
    "util/TestSelectBest": "the choice among nodes of equal score",
}


class TableStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_YET = "not_yet"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class TableResult:
    """How one table fared. ``reason`` is empty only where it passed; ``rows`` is how many rows the table has."""

    file: str
    status: TableStatus
    reason: str
    rows: int


def table(*files: str, **fixed: Any) -> Callable[[_C], _C]:
    """Registers a check for these files; ``fixed`` are keyword arguments of the check that the files stand for.

    Raises: ValueError where a file has an entry already.
    """

    def register(check: _C) -> _C:
        for file in files:
            if file in TABLES or file in NOT_APPLICABLE:
                raise ValueError(f"table {file} has two entries")
            TABLES[file] = partial(check, **fixed)
        return check

    return register


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
