"""One HTML file with everything in it. Names that tenants chose appear on it as text and cannot run as code.

The data is a block of base64, in which no text can close its element. The script makes text nodes of it and nothing
else. The page's own policy allows this script and this style only, and no request leaves the page.
"""

from __future__ import annotations

import base64
import html
import re
import zlib
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Protocol

from pumice import __version__
from pumice.runtime.printing import json_text

SCRIPTS = (
    "base.js",
    "parts.js",
    "view.js",
    "curves.js",
    "charts.js",
    "waits.js",
    "jobs.js",
    "nodes.js",
    "compare.js",
    "page.js",
)

_PLACE = re.compile(r"\{\{(\w+)\}\}")


class PageData(Protocol):
    """The data of a page."""

    @property
    def title(self) -> str: ...

    @property
    def subtitle(self) -> str: ...

    def to_json(self) -> dict[str, Any]:
        """Return what the script reads. ``kind`` says which page it is."""
        ...


def render(data: PageData) -> str:
    """Return the whole page."""
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
    return _fill_in(asset("page.html"), parts)


def embedded(value: Any) -> str:
    """Return a value as JSON, deflated without a header, as base64."""
    squeeze = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(squeeze.compress(json_text(value, dense=True).encode()) + squeeze.flush()).decode()


def _fill_in(template: str, parts: Mapping[str, str]) -> str:
    """Return the template with every place filled once. Texts that are filled in are not searched for places."""
    return _PLACE.sub(lambda place: parts[place[1]], template)


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("pumice.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
