"""docs/points.md, written from the extension points themselves: ``python -m docs.points``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from pumice.framework.plugin.point import Question
from pumice.kai.points import POINTS as OF_KAI
from pumice.volcano.points import FEATURE_SWITCHES, POINTS

PAGE = Path(__file__).with_suffix(".md")
OPENING = """\
# Extension points

Every question that plugins answer. Written by `python -m docs.points` from `src/pumice/framework/plugin/points.py`,
`src/pumice/volcano/points.py` and `src/pumice/kai/engine/points.py`: do not edit.

A hook is a function that takes, after `ssn` or `self`, one of the *forms* of its point. A form with `TaskClass` is
asked once for all equal tasks, one with `Task` each time; with `NodeRows` it answers for many nodes in one array. A
*switch* is written with the plugin in the policy file, as `enableJobOrder: false` or `enabledJobOrder: false`; one that
is not written is on, unless the table says otherwise. [Writing a plugin](guide/write-a-plugin.md) shows each form.
"""


def page() -> str:
    """The whole page as it should be."""
    of_kai = ("## In KAI's language", "", *_of_kai(), "")
    combined = ("## How answers are combined", "", *_combinators(), "")
    return "\n".join((OPENING, *_points(), "", *of_kai, *combined))


def _points() -> Iterator[str]:
    yield "| point | what it asks | when | combined by | switch | forms |"
    yield "|---|---|---|---|---|---|"
    for point in POINTS.values():
        forms = "<br>".join(f"`({', '.join(form)})`" for form in point.forms)
        combined = point.combinator.__name__
        yield f"| `{point.name}` | {point.asks} | {point.when} | {combined} | {_switch(point)} | {forms} |"
    yield ""
    features = ", ".join(f"`enable{name}` ({'on' if on else 'off'})" for name, on in FEATURE_SWITCHES.items())
    yield f"Switches that gate no point but change what a plugin does, with their default: {features}."


def _of_kai() -> Iterator[str]:
    shared = ", ".join(f"`{name}`" for name in OF_KAI if name in POINTS)
    yield f"Of the points above it has {shared}; and these:"
    yield ""
    yield "| point | what it asks | when | combined by | forms |"
    yield "|---|---|---|---|---|"
    for point in OF_KAI.values():
        if point.name not in POINTS:
            forms = "<br>".join(f"`({', '.join(form)})`" for form in point.forms)
            yield f"| `{point.name}` | {point.asks} | {point.when} | {point.combinator.__name__} | {forms} |"


def _switch(point: Question) -> str:
    if not point.any_switch:
        return "always on"
    named = " or ".join(f"`enable{switch}`" for switch in point.any_switch)
    return named if point.default_on else f"{named}, off unless written"


def _combinators() -> Iterator[str]:
    used = {point.combinator: None for points in (POINTS, OF_KAI) for point in points.values()}
    for combinator in used:
        text = " ".join(inspect.getdoc(combinator).split())  # type: ignore[union-attr]  # each has a docstring
        yield f"* **{combinator.__name__}**: {text.replace('``', '`')}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
