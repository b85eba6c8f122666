"""The page of the public API is that of this version."""

from __future__ import annotations

import pumice
from docs.api import PAGE, page
from tests.tidy import repo


def test_the_page_is_generated() -> None:
    assert repo.text(PAGE) == page(), "run .venv/bin/python -m docs.api"


def test_each_public_name_is_on_the_page() -> None:
    text = repo.text(PAGE)
    assert not [name for name in pumice.__all__ if not name.startswith("__") and f"## `{name}`\n" not in text]
    assert f"version {pumice.__version__}\n" in text
