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
from pumice.framework.cycle.world import World

PAGE = Path(__file__).with_suffix(".md")
GIVEN = (Task, TaskClass, ClassRows, Job, SubJob, Queue, Node, NodeRows, JobRows, TaskRows, Candidates, TaskRun)
OPENING = """\
# What a hook can ask

What can be read of the things that hooks are given. Written by `python -m docs.rows` from `src/pumice/columns`: do not
edit.

One thing (`Task`, `Job`) reads one row; rows (`NodeRows`) read many at once, as arrays. A shape (R,) is one number a
resource: `CPU` (thousandths of a core) and `MEMORY` (bytes) are its first two, `tables.axis.names` says all of them. A
row number is only good in this session, and -1 stands for none. Nothing here can be written: a plugin writes columns
of its own (`ssn.column`), through `ssn.journal`.

The session (`ssn`) has `now` (seconds since the epoch), `total` (what all nodes have, (R,)), `tables`, `journal`, and
for a plugin that opens `column`. [Writing a plugin](guide/write-a-plugin.md) shows how they go together.
"""


def page() -> str:
    """The whole page as it should be."""
    return "\n".join((OPENING, *(line for each in GIVEN for line in _section(each)), *_of_session()))


def _section(of: type) -> Iterator[str]:
    yield f"## {of.__name__}"
    yield ""
    yield _text(inspect.getdoc(of) or "")
    yield ""
    yield "| name | type | what it is |"
    yield "|---|---|---|"
    for name, member in sorted(_members(of).items()):
        called = member.fget if isinstance(member, property) else member
        takes = "" if isinstance(member, property) else _parameters(member)
        yield f"| `{name}{takes}` | `{_type(called)}` | {_text(inspect.getdoc(called) or '')} |"
    yield ""


def _of_session() -> Iterator[str]:
    yield "## Session.column"
    yield ""
    yield f"`column{_parameters(Session.column)}`: {_text(inspect.getdoc(World.column) or '')}"
    yield ""


def _members(of: type) -> dict[str, Any]:
    """What can be read of it or asked, by name."""
    found = {name: member for name, member in inspect.getmembers(of) if not name.startswith("_")}
    return {name: each for name, each in found.items() if isinstance(each, property) or inspect.isfunction(each)}


def _parameters(function: object) -> str:
    parameters = list(inspect.signature(function).parameters.values())[1:]  # type: ignore[arg-type]
    return f"({', '.join(each.name for each in parameters)})"


def _type(function: object) -> str:
    return str(inspect.signature(function).return_annotation)  # type: ignore[arg-type]


def _text(doc: str) -> str:
    """A docstring as one line of a page."""
    return re.sub(r"\s+", " ", doc).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
