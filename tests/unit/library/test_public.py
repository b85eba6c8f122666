"""``import pumice``: its names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pumice


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has after some code."""
    program = f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", pumice.__all__)
def test_each_public_name_exists(name: str) -> None:
    assert getattr(pumice, name) is not None


def test_public_names_are_those_with_a_place() -> None:
    assert set(pumice.__all__) == {*pumice._PLACES, "__version__"}
    assert set(dir(pumice)) == set(pumice.__all__)


def test_import_loads_the_standard_library_alone() -> None:
    assert {name.partition(".")[0] for name in loaded_by("import pumice")} <= {"pumice", *sys.stdlib_module_names}
    assert {name for name in loaded_by("import pumice") if name.startswith("pumice")} == {"pumice"}


def test_explain_is_the_function_after_cycles_were_imported() -> None:
    loaded = loaded_by("import pumice, pumice.runtime.one_cycle; assert callable(pumice.explain)")
    assert "pumice.library.questions" in loaded


def test_no_command_imports_nanoarrow() -> None:
    loaded = loaded_by("import pumice.cli.commands.simulate, pumice.cli.commands.compare, pumice.sim.run")
    assert "nanoarrow" not in loaded and "pumice.sim.run" in loaded


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'pumice' has no attribute 'lod'"):
        _ = pumice.lod
