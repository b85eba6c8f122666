"""The accessibility rules of axe-core, an npm package that `make test-pages` installs beside this file."""

from __future__ import annotations

from pathlib import Path

from tests.web.browser import Page

AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
WITHOUT_AXE = "no axe-core: make test-pages installs it with npm"
#: What keeps people from using a page. Less than that is advice.
_GRAVE = ("serious", "critical")
_RUN = """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations.map((each) =>
  [each.impact, each.id, ...each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]))"""


async def violations(page: Page) -> list[list[str]]:
    """Return the rules that a page breaks gravely: impact, rule, and elements that do."""
    await page.js(AXE.read_text(encoding="utf-8") + "; null")
    return [each for each in await page.js(_RUN) if each[0] in _GRAVE]
