"""One HTML file with everything in it. What tenants named can appear on it, and do nothing on it.

The data is a JSON block that cannot close itself, the script makes text nodes of it and nothing else, and the page's
own policy allows this script and this style only: no request leaves it.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from pumice import __version__
from pumice.report.data import ReportData
from pumice.runtime.printing import json_text

SCRIPTS = ("base.js", "curves.js", "charts.js", "jobs.js", "nodes.js", "page.js")

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def render(data: ReportData) -> str:
    """The whole page."""
    style, script = asset("page.css"), "\n".join(asset(name) for name in SCRIPTS)
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    parts = {
        "policy": f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        "version": html.escape(__version__),
        "title": html.escape(f"{data.title}: {data.subtitle}"),
        "style": style,
        "data": embedded(data.to_json()),
        "script": script,
    }
    return _filled(asset("page.html"), parts)


def embedded(value: Any) -> str:
    """JSON that can stand in a script element: without any character that HTML, or a script, reads in its own way."""
    return json_text(value, dense=True).translate(_ESCAPES)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Every place filled once; what is filled in is not looked at again."""
    return _PLACE.sub(lambda place: parts[place[1]], template)


@cache
def asset(name: str) -> str:
    """The text of a file beside this one."""
    return files("pumice.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
