"""Tables of names whose values are imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pumice.framework.plugin.on_demand import OnDemand
from pumice.framework.plugin.registry import Dialect
from pumice.runtime.policy.languages import LANGUAGES

FOUND: OnDemand[float] = OnDemand({"tau": "math:tau", "moon": "nowhere:moon"}, lambda name, value: value)


def test_names_are_known_without_an_import() -> None:
    assert list(FOUND) == ["tau", "moon"]
    assert len(FOUND) == 2
    assert "moon" in FOUND
    assert "sun" not in FOUND


def test_a_value_is_what_the_module_has() -> None:
    assert FOUND["tau"] == pytest.approx(6.2831853)
    assert FOUND.get("sun") is None
    with pytest.raises(ModuleNotFoundError):
        FOUND["moon"]


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_line_of_a_languages_table_leads_to_what_it_names(name: str) -> None:
    dialect: Dialect = LANGUAGES[name]
    assert dialect.name == name
    assert [spec.name for spec in dialect.plugins.values()] == list(dialect.plugins)
    assert [action.run.__name__ for action in dialect.actions.values()] == list(dialect.actions)


def test_a_policy_imports_what_it_names_and_no_other_language() -> None:
    code = """if True:
        import sys
        from pumice.runtime.policy.conf import policy_of
        from pumice.runtime.policy.languages import builtin_registry
        policy_of("actions: allocate\\ntiers: [{plugins: [{name: gang}]}]", builtin_registry())
        print(*sorted(m for m in sys.modules if m.startswith(("pumice.kai", "pumice.volcano.plugins."))))
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["pumice.volcano.plugins.gang"]
