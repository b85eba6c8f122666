"""Write docs/api.md: every name of `import pumice`, with its signature, of the version that stands at its head."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pumice

PAGE = Path(__file__).parent / "api.md"
_HEAD = f"""# The public API, version {pumice.__version__}

All names of `import pumice`. Written by `python -m docs.api` from their docstrings: do not edit.
[Pumice in Python](guide/python.md) shows how they go together, and [what a hook can ask](rows.md) lists `pumice.api`,
from which plugins import.

What is on this page keeps its name, arguments and meaning within a minor version (0.1.x). Attributes that it does not
list, and modules below `pumice`, can change at any time. The [changelog](../CHANGELOG.md) names each change.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_names()])


def _names() -> Iterator[str]:
    for name in sorted(pumice.__all__, key=str.lower):
        if name.startswith("__"):
            continue
        yield from _section(name, getattr(pumice, name))


def _section(name: str, value: Any) -> Iterator[str]:
    yield f"## `{name}`\n"
    if inspect.isclass(value):
        yield f"{_text(value)}\n"
        members = [(each, member) for each, member in vars(value).items() if not each.startswith("_")]
        shown = [(each, member) for each, member in members if _is_public(member)]
        if shown:
            yield "| name | what it is |\n|---|---|"
            yield from (f"| `{each}{_signature(member)}` | {_text(member, first=True)} |" for each, member in shown)
            yield ""
    elif inspect.ismodule(value):
        yield "The extension points of plugins: [the list](points.md).\n"
    else:
        yield f"```python\n{name}{_signature(value)}\n```\n\n{_text(value)}\n"


def _is_public(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, property) or hasattr(member, "func")


def _signature(member: Any) -> str:
    if not inspect.isfunction(member):
        return ""
    found = inspect.signature(member)
    parameters = [each for each in found.parameters.values() if each.name != "self"]
    return str(found.replace(parameters=parameters)).replace("'", "")


def _text(value: Any, *, first: bool = False) -> str:
    """Return a docstring as Markdown; its first paragraph alone for a cell of a table."""
    value = getattr(value, "func", value)  # a cached property keeps its function there
    doc = inspect.cleandoc(value.__doc__ or "")
    text = doc.split("\n\n")[0].replace("\n", " ").replace("|", "\\|") if first else doc
    return re.sub(r"``([^`]+)``", r"`\1`", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
