"""The files that pages are made of: their own, and those that they share with reports."""

from __future__ import annotations

import html
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from pumice import __version__
from pumice.report.html import asset as report_asset

#: Pages by path, with the name that people read.
PAGES: Mapping[str, str] = MappingProxyType(
    {
        "/": "Overview",
        "/queues": "Queues",
        "/jobs": "Jobs",
        "/job": "Job",
        "/nodes": "Nodes",
        "/node": "Node",
        "/gantt": "Gantt",
        "/policy": "Policy",
        "/cycles": "Cycles",
    }
)
#: Pages of one thing, which others link to.
_OF_ONE = ("/job", "/node")
#: Files that are served, each made of parts in this order. Those with "report/" are the report's.
_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pages.css": ("report/page.css", "pages.css"),
        "pages.js": (
            *("report/base.js", "report/parts.js", "report/view.js", "report/curves.js"),
            *(
                "shared.js",
                "history.js",
                "overview.js",
                "queues.js",
                "jobs.js",
                "job.js",
                "nodes.js",
                "gantt.js",
                "policy.js",
                "cycles.js",
            ),
            *("simulation.js", "start.js"),
        ),
    }
)


@cache
def asset(name: str) -> str:
    """Return a file that is served. Raises: KeyError."""
    return "\n".join(_part(part) for part in _FILES[name])


def _part(name: str) -> str:
    room, _, rest = name.partition("/")
    if rest and room == "report":
        return report_asset(rest)
    return files("pumice.web").joinpath("static", name).read_text(encoding="utf-8")


@cache
def shell(title: str, *, is_simulation: bool = False) -> str:
    """Return the page around what its script shows. ``is_simulation``: results of one, of which there is one page."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if name == title else ""}>{name}</a>'
        for path, name in PAGES.items()
        if path not in _OF_ONE and not is_simulation
    )
    kind = "simulation" if is_simulation else "cycle"
    places = {"title": html.escape(title), "version": html.escape(__version__), "links": links, "kind": kind}
    text = _part("shell.html")
    for name, value in places.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text
