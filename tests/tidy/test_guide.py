"""The Python of the guide runs: the blocks of a page are one module, and its test functions are tests."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.tidy import repo

GUIDE = repo.ROOT / "docs" / "guide"
PYTHON_BLOCK = re.compile(r"^```python\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted(GUIDE.glob("*.md")) if PYTHON_BLOCK.search(repo.text(page))]
TEST_NAMES = [
    pytest.param(page, name, id=f"{page.stem}: {name}")
    for page in PAGES
    for name in re.findall(r"^def (test_\w+)", repo.text(page), re.MULTILINE)
]


def module_of(page: Path, folder: Path) -> ModuleType:
    """The page's Python as a module. A file, so that a traceback can show its lines."""
    path = folder / f"{page.stem.replace('-', '_')}.py"
    path.write_text("\n".join(block["body"] for block in PYTHON_BLOCK.finditer(repo.text(page))), encoding="utf-8")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_page_with_python_tests_it() -> None:
    tested = {param.values[0] for param in TEST_NAMES}
    assert PAGES and tested == set(PAGES)


@pytest.mark.parametrize(("page", "name"), TEST_NAMES)
def test_what_the_page_says(page: Path, name: str, tmp_path: Path) -> None:
    getattr(module_of(page, tmp_path), name)()
