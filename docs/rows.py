"""docs/rows.md, written from what hooks are given: ``python -m docs.rows``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pumice.api import (
    Candidates,
    ClassRows,
    EvictionContext,
    Job,
    JobRows,
    Node,
    NodeRows,
    Queue,
    Session,
    SubJob,
    Task,
    TaskClass,
    TaskRows,
    TaskRun,
)
from pumice.columns.label_values import LabelValues
from pumice.framework.cycle.world import World
from pumice.kai.engine.groups import Group, Subset
from pumice.kai.engine.parts import Scenario
from pumice.kai.engine.points import QueueRequest
from pumice.model.devices.gpu import GpuShare
from pumice.model.node import Node as NodeObject
from pumice.model.pod import Pod, PodSpec
from pumice.model.queue import Queue as QueueObject
from pumice.model.queue import QueueSharing, Quota
from pumice.model.resources import Resource
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus

PAGE = Path(__file__).with_suffix(".md")
#: Kubernetes objects as far as they are read, and what they are made of.
OBJECTS: dict[str, type] = {
    "Pod": Pod,
    "PodSpec": PodSpec,
    "GpuShare": GpuShare,
    "PodGroup": PodGroup,
    "PodGroupStatus": PodGroupStatus,
    "Queue (the object)": QueueObject,
    "QueueSharing": QueueSharing,
    "Quota": Quota,
    "Node (the object)": NodeObject,
    "Resource": Resource,
}
#: What single points give beside these.
OF_POINTS: dict[str, type] = {
    "EvictionContext": EvictionContext,
    "QueueRequest": QueueRequest,
    "Group": Group,
    "Subset": Subset,
    "Scenario": Scenario,
}
OF_POINTS_OPENING = (
    "## What single points give",
    "",
    "`EvictionContext` is of Volcano's language; `QueueRequest`, `Group`, `Subset` and `Scenario` are of KAI's. The"
    " `part` of a scenario has `job` (a row), `rows` (its tasks) and `amount(tables)` (R,).",
    "",
)
OF_OBJECTS = (
    "## Kubernetes objects",
    "",
    "`task.pod`, `cls.spec`, `job.group`, `queue.obj` and `node.obj` are the objects of the cluster, as far as Pumice"
    " reads them. A field that is not here is not read.",
    "",
)
GIVEN = (
    Task,
    TaskClass,
    ClassRows,
    Job,
    SubJob,
    Queue,
    Node,
    NodeRows,
    JobRows,
    TaskRows,
    Candidates,
    LabelValues,
    TaskRun,
)
OPENING = """\
# What a hook can ask

What can be read of the things that hooks are given. Written by `python -m docs.rows` from `src/pumice/columns`: do not
edit.

One thing (`Task`, `Job`) reads one row; rows (`NodeRows`) read many at once, as arrays and lists in the order of the
rows. A thing is false where there is none: ask `if task.node:` before you read a node. It can be the index of an array
that has a value for each row: `column.array[task.queue]`. A row number (`task.row`) is only good in this session, and
-1 means none. Nothing here can be written: a plugin writes columns of its own (`ssn.column`), through
`ssn.journal`. [Writing a plugin](guide/write-a-plugin.md) shows how they go together.

## Units

A shape (R,) is one number for each resource. Which resource is at which index, and in which unit:

| place along R | resource | unit |
|---|---|---|
| `CPU`, which is 0 | `cpu` | thousandths of a core |
| `MEMORY`, which is 1 | `memory` | bytes |
| `ssn.resource("nvidia.com/gpu")` | GPUs | thousandths of a GPU: 1000 is one |
| `ssn.resource(name)` | any other resource that a node has or a queue names, `ephemeral-storage` too | thousandths |
| `ssn.resource("pods")`, which is the last | `pods` | pods |

`ssn.resource(name)` is None where no node has and no queue names the resource. Moments are seconds since the epoch,
spans are seconds. Kubernetes objects (`pod`, `spec`, `group`, `obj`) keep amounts as
`Resource`: `milli_cpu`, `memory`, and `scalars` by name, in the same units.
"""


def page() -> str:
    """The whole page as it should be."""
    given = (line for each in GIVEN for line in _section(each))
    of_points = (line for name, each in OF_POINTS.items() for line in _of_object(name, each))
    objects = (line for name, each in OBJECTS.items() for line in _of_object(name, each))
    return "\n".join((OPENING, *_of_session(), *given, *OF_POINTS_OPENING, *of_points, *OF_OBJECTS, *objects))


def _section(of: type) -> Iterator[str]:
    yield f"## {of.__name__}"
    yield ""
    yield _text(inspect.getdoc(of) or "")
    yield ""
    yield "| name | type | what it is |"
    yield "|---|---|---|"
    for name, member in sorted(_members(of).items()):
        yield _line(name, member)
    yield ""


def _of_object(name: str, of: type) -> Iterator[str]:
    """A Kubernetes object, as far as it is read: its fields, and what is worked out from them."""
    yield f"### {name}"
    yield ""
    yield _text(inspect.getdoc(of) or "")
    yield ""
    yield "| field | type |"
    yield "|---|---|"
    fields = {field: getattr(type_, "__forward_arg__", type_) for field, type_ in inspect.get_annotations(of).items()}
    yield from (f"| `{field}` | `{_text(str(type_))}` |" for field, type_ in fields.items())
    worked_out = {name: member for name, member in _members(of).items() if isinstance(member, property)}
    yield from (f"| `{field}` | `{_type(member.fget)}` |" for field, member in sorted(worked_out.items()))
    yield ""


def _line(name: str, member: Any) -> str:
    called = member.fget if isinstance(member, property) else member
    takes = "" if isinstance(member, property) else _parameters(member)
    doc = World.column if member is Session.column else called
    return f"| `{name}{takes}` | `{_type(called)}` | {_text(inspect.getdoc(doc) or '')} |"


#: What plugins ask a session for; it has more, for actions.
_OF_SESSION = ("nodes", "queues", "jobs", "tasks", "running", "usage", "resource", "shared", "column")
_FIELDS = (
    ("now", "float", "The moment of this cycle, seconds since the epoch. The only clock that there is."),
    ("total", "F64", "What all nodes have together (R,)."),
    ("journal", "Journal", "The writer of columns: `put(column, rows, values)` and `add(column, rows, changes)`."),
    ("tables", "Tables", "All columns of the cluster, by table. What this page has is easier to read."),
)


def _of_session() -> Iterator[str]:
    yield "## Session"
    yield ""
    yield (
        "The session (`ssn`) of one cycle. What it lists is as it is at the moment at which it is asked: read it as a"
        " plugin opens, and keep what follows from it in a column of your own."
    )
    yield ""
    yield "| name | type | what it is |"
    yield "|---|---|---|"
    yield from (f"| `{name}` | `{type_}` | {what} |" for name, type_, what in _FIELDS)
    members = _members(Session)
    yield from (_line(name, members[name]) for name in _OF_SESSION)
    yield ""


def _members(of: type) -> dict[str, Any]:
    """What can be read of it or asked, by name."""
    found = {name: member for name, member in inspect.getmembers(of) if not name.startswith("_")}
    return {name: each for name, each in found.items() if isinstance(each, property) or inspect.isfunction(each)}


def _parameters(function: object) -> str:
    parameters = list(inspect.signature(function).parameters.values())[1:]  # type: ignore[arg-type]
    return f"({', '.join(each.name for each in parameters)})"


def _type(function: object) -> str:
    return _text(str(inspect.signature(function).return_annotation))  # type: ignore[arg-type]


def _text(doc: str) -> str:
    """A docstring as one line of a page."""
    return re.sub(r"\s+", " ", doc).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
