"""How the documentation becomes a site: `make site`. Read by Sphinx (decision 0037)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")

#: What a newcomer reads in order, what answers a question, and what is looked up.
SECTIONS = {
    "Tutorial": ("guide/getting-started", "guide/install", "guide/python", "guide/write-a-plugin"),
    "How to": (
        "guide/run",
        "guide/replace-volcano",
        "guide/kai",
        "guide/simulate",
        "guide/one-run",
        "guide/compare",
        "guide/sweep",
        "guide/sizing",
        "guide/fill",
        "guide/devices",
        "guide/defragment",
        "guide/waiting-time",
        "guide/why-does-my-gang-wait",
        "guide/what-if",
        "guide/pages",
        "guide/embedded-server",
        "guide/troubleshooting",
    ),
    "Reference": (
        "api",
        "guide/policy-file",
        "points",
        "rows",
        "guide/determinism",
        "guide/conformance",
        "performance",
        "decisions/README",
    ),
}

project = "Pumice"
author = "the authors of Pumice"
release = re.search(r'__version__ = "(.*)"', (ROOT / "src/pumice/__init__.py").read_text("utf-8"))[1]
html_theme = "furo"
html_title = f"Pumice {release}"
extensions = ["myst_parser"]
root_doc = "README"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # links to a heading are checked too
myst_enable_extensions = ["strikethrough"]
pygments_style = "sphinx"


def _without_files(app: Sphinx, docname: str, source: list[str]) -> None:
    """Make names of links to files of the repository, which are no part of the site.

    Raises: ValueError for a file that does not exist; links between pages are checked by Sphinx.
    """
    folder = (DOCS / f"{docname}.md").parent

    def replaced(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        if mark or "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path = (folder / target.partition("#")[0]).resolve()
        if path.is_relative_to(DOCS) and path.suffix == ".md":
            return match[0]
        if not path.exists():
            raise ValueError(f"docs/{docname}.md: found a link to {target}, which does not exist")
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        return text if name in text else f"{text} (`{name}`)"

    source[0] = _LINK.sub(replaced, source[0])
    if docname == root_doc:
        trees = (_tree(caption, pages) for caption, pages in SECTIONS.items())
        source[0] += "\n".join(["", *trees])
    if docname == "decisions/README":
        pages = sorted(path.stem for path in (DOCS / "decisions").glob("*.md") if path.stem != "README")
        source[0] += "\n" + _tree("", pages)


def _tree(caption: str, pages: Iterable[str]) -> str:
    """Return pages as entries of the menu."""
    return "\n".join(
        ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```", ""]
    )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _without_files)
