"""Say loudly that no page was tested where there is no browser: a skip alone is easily taken for a success."""

from __future__ import annotations

import pytest

from tests.web.browser import CHROMIUM, WITHOUT_CHROMIUM


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if CHROMIUM is None:
        terminalreporter.section("NO PAGE WAS TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"tests/web: {WITHOUT_CHROMIUM}", red=True)
