"""What the core may import from outside, as a list of what is allowed: import-linter can only list what is not. And
that no two modules of the core need each other."""

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from tests.tidy import repo

CORE = (
    "model",
    "algorithms",
    "columns",
    "state",
    "framework",
    "api.py",
    "placing",
    "volcano",
    "kai",
    "ours",
    "cycle.py",
)  # not `reasons`: it is beside the cycle, and reads what the cycle recorded


#: Of msgspec, the core has what values are made of, and nothing that decodes (decision 0002).
VALUES = {"msgspec.Struct", "msgspec.field", "msgspec.structs"}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Top-level names of all imports in a file, or one of VALUES, with their lines; those for type checkers count
    too."""
    for node in ast.walk(repo.tree(path)):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name.split(".")[0], node.lineno) for alias in names)
            case ast.ImportFrom(module="msgspec", names=names):
                yield from ((f"msgspec.{alias.name}", node.lineno) for alias in names)
            case ast.ImportFrom(module="msgspec.structs"):
                yield "msgspec.structs", node.lineno
            case ast.ImportFrom(module=str(module)):
                yield module.split(".")[0], node.lineno


#: File -> what it alone may import besides, each with a decision record that says why.
LET_IN = {
    "src/pumice/algorithms/patterns.py": {"re2"},
    "src/pumice/algorithms/cel.py": {"cel_expr_python"},
}


@pytest.mark.parametrize("room", CORE)
def test_core_imports_numpy_values_and_the_standard_library(room: str) -> None:
    allowed = sys.stdlib_module_names | VALUES | {"pumice"} | ({"numpy"} if room != "model" else set())
    found = [
        f"{repo.name(path)}:{line}: {module}"
        for path in repo.files(".py", under=f"src/pumice/{room}")
        for module, line in imported(path)
        if module not in allowed | LET_IN.get(repo.name(path), set())
    ]
    assert not found, repo.listed(
        "the core imports NumPy, Struct and the standard library only, model not even NumPy", found
    )


def modules() -> dict[str, Path]:
    """Every module of the core by its dotted name."""
    found = {}
    for path in (path for room in CORE for path in repo.files(".py", under=f"src/pumice/{room}")):
        parts = path.relative_to(repo.ROOT / "src").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needs(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the core that a file imports, wherever in it; those for type checkers count too."""
    found = set()
    for node in ast.walk(repo.tree(path)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                inner = {f"{module}.{alias.name}" for alias in names}
                found |= (inner & known.keys()) or {module}
    return found & known.keys()


def test_no_circle_of_imports() -> None:
    """A reader can begin with any module and go down."""
    known = modules()
    assert {"pumice.columns.column", "pumice.framework.cycle.session", "pumice.volcano.table"} <= known.keys()
    try:
        TopologicalSorter({name: needs(path, known) for name, path in known.items()}).prepare()
    except CycleError as error:
        raise AssertionError(f"these modules need each other: {' -> '.join(error.args[1])}") from None


#: Tables of names, ``"module:what"``: what a name means is imported when a policy or a file names it. Their edges
#: are looked at here, since import-linter and mypy cannot see them.
TABLES = {
    "src/pumice/volcano/table.py": ("pumice.volcano.actions.", "pumice.volcano.plugins."),
    "src/pumice/kai/table.py": ("pumice.kai.actions.", "pumice.kai.plugins."),
    "src/pumice/ours/table.py": ("pumice.ours.plugins.",),
    "src/pumice/runtime/policy/languages.py": ("pumice.volcano.table", "pumice.kai.table", "pumice.ours.language"),
    "src/pumice/runtime/policy/conf.py": ("pumice.runtime.",),
}
PLACE = re.compile(r"pumice(?:\.\w+)+:\w+")


def test_no_import_hides_in_a_text() -> None:
    """An edge that is a text is seen by no checker of imports or types, and by no reader."""
    for path in repo.files(".py", under="src/pumice"):
        texts = [n.value for n in ast.walk(repo.tree(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        places = [text for text in texts if PLACE.fullmatch(text)]
        allowed = TABLES.get(repo.name(path), ())
        hidden = [place for place in places if not place.startswith(allowed or ("-",))]
        assert not hidden, repo.listed(f"{repo.name(path)}: import it plainly, inside a function if late", hidden)
        for place in places:
            module, _, what = place.partition(":")
            assert hasattr(import_module(module), what), f"{repo.name(path)}: {place} is not there"


def test_the_tables_of_names_are_there() -> None:
    for name in TABLES:
        assert PLACE.search(repo.text(repo.ROOT / name)), f"{name} names no module any more: take it out of TABLES"
