"""docs/points.md, written from the extension points themselves: ``python -m docs.points``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pumice.framework import combine
from pumice.framework.points import FEATURE_SWITCHES, POINTS, Point

PAGE = Path(__file__).with_suffix(".md")
OPENING = """\
# Extension points

Every question that plugins answer. Written by `python -m docs.points` from `src/pumice/framework/points.py`: do not
edit.

A hook is a function whose parameters, after `ssn` or `self`, are one of the *shapes* of its point. A shape with
`TaskClass` is asked once for all equal tasks, one with `Task` each time; with `NodeRows` it answers for many nodes in
one array. A *switch* is written with the plugin in the policy file, as `enableJobOrder: false` or
`enabledJobOrder: false`; one that is not written is on, unless the table says otherwise.
[Writing a plugin](guide/write-a-plugin.md) shows each form.
"""


def page() -> str:
    """The whole page as it should be."""
    return "\n".join((OPENING, *_points(), "", "## How answers are combined", "", *_combinators(), ""))


def _points() -> Iterator[str]:
    yield "| point | what it asks | combined by | switch | shapes |"
    yield "|---|---|---|---|---|"
    for point in POINTS.values():
        shapes = "<br>".join(f"`({', '.join(shape)})`" for shape in point.forms)
        yield f"| `{point.name}` | {point.asks} | {_name(point.combinator)} | {_switch(point)} | {shapes} |"
    yield ""
    features = ", ".join(f"`enable{name}` ({'on' if on else 'off'})" for name, on in FEATURE_SWITCHES.items())
    yield f"Switches that gate no point but change what a plugin does, with their default: {features}."


def _switch(point: Point) -> str:
    if not point.any_switch:
        return "always on"
    named = " or ".join(f"`enable{switch}`" for switch in point.any_switch)
    return named if point.default_on else f"{named}, off unless written"


def _combinators() -> Iterator[str]:
    used = {point.combinator: None for point in POINTS.values()}
    for combinator in used:
        text = " ".join(inspect.getdoc(combinator).split())  # type: ignore[union-attr]  # each has a docstring
        yield f"* **{_name(combinator)}**: {text.replace('``', '`')}"


def _name(combinator: Callable[..., Any]) -> str:
    """Its name; both, where one walk has two readings."""
    return " / ".join(name for name, value in vars(combine).items() if value is combinator)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
