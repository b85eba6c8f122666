"""Which actions and plugins there are: by dialect and name, and what is said of those that are not there yet."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE, Argument, plugin
from pumice.framework.plugin.registry import Dialect, Registry, action_spec
from pumice.volcano import points


def tidy(ssn: Session, *, rounds: int = 1, deep: bool = False) -> None:
    """An action."""


def rest(ssn: Session) -> None:
    """An action without arguments."""


@plugin("ready")
@points.job_ready
def ready(ssn: Session, job: Job) -> bool:
    return True


@plugin("ready")
@points.job_ready
def other_ready(ssn: Session, job: Job) -> bool:
    return False


@plugin("busy")
@points.overused
def busy(ssn: Session, queue: Queue) -> bool:
    return True


def dialect(*actions: Any, plugins: tuple[Any, ...] = (), **missing: str) -> Dialect:
    specs = [getattr(target, PLUGIN_ATTRIBUTE) for target in plugins]
    return Dialect({f.__name__: action_spec(f.__name__, f) for f in actions}, {s.name: s for s in specs}, missing)


REGISTRY = Registry(
    {"volcano": dialect(tidy, rest, plugins=(ready, busy), shuffle="not here yet"), "other": dialect(rest)}
)


@pytest.mark.parametrize(
    ("dialect_name", "name", "action"),
    [
        pytest.param("volcano", "tidy", tidy, id="by name"),
        pytest.param("other", "tidy", None, id="another dialect does not have it"),
        pytest.param("other", "volcano/tidy", tidy, id="unless one reaches across"),
        pytest.param("volcano", "nowhere/tidy", None, id="to a dialect that there is"),
        pytest.param("volcano", "shuffle", None, id="not there yet"),
    ],
)
def test_actions(dialect_name: str, name: str, action: Any) -> None:
    found = REGISTRY.action(dialect_name, name)
    assert (found.run if found else None) is action


@pytest.mark.parametrize(
    ("dialect_name", "name", "target"),
    [
        pytest.param("volcano", "ready", ready, id="by name"),
        pytest.param("other", "ready", None, id="another dialect does not have it"),
        pytest.param("other", "volcano/ready", ready, id="unless one reaches across"),
    ],
)
def test_plugins(dialect_name: str, name: str, target: Any) -> None:
    found = REGISTRY.plugin(dialect_name, name)
    assert (found.target if found else None) is target


def test_plugins_of_no_dialect_are_there_by_prefix_and_by_a_name_that_is_free() -> None:
    ours = {spec.name: spec for spec in (getattr(target, PLUGIN_ATTRIBUTE) for target in (ready, busy))}
    registry = Registry({"volcano": dialect(plugins=(other_ready,)), "other": dialect()}, ours)
    named = {
        name: registry.plugin("volcano", name) for name in ("ours/ready", "ready", "busy", "other/busy", "ours/no")
    }
    found = {name: spec.target if spec else None for name, spec in named.items()}
    assert found == {"ours/ready": ready, "ready": other_ready, "busy": busy, "other/busy": busy, "ours/no": None}
    assert registry.plugins("other") == ["busy", "ready"]
    assert registry.with_plugins("other", []).ours == ours


def test_what_is_said_of_what_is_not_there_yet() -> None:
    assert REGISTRY.why_missing("volcano", "shuffle") == "not here yet"
    assert REGISTRY.why_missing("other", "volcano/shuffle") == "not here yet"
    assert REGISTRY.why_missing("other", "shuffle") is None


def test_an_action_s_arguments_are_its_keyword_parameters() -> None:
    spec = action_spec("tidy", tidy)
    assert spec.arguments == {"rounds": Argument("rounds", "int", 1), "deep": Argument("deep", "bool", False)}
    assert (spec.run, spec.only_for_waiting) == (tidy, False)


def test_more_plugins_leave_the_registry_as_it_was() -> None:
    more = REGISTRY.with_plugins("other", [ready])
    assert more.plugins("other") == ["ready"]
    assert REGISTRY.plugins("other") == []
    assert more.plugins("volcano") == REGISTRY.plugins("volcano") == ["busy", "ready"]
    assert more.actions("volcano") == ["rest", "tidy"]
    assert more.why_missing("volcano", "shuffle") == "not here yet"


def test_a_dialect_has_the_switches_of_its_points_and_features() -> None:
    found = Dialect(
        points={"job_ready": points.job_ready, "cluster_order": points.cluster_order, "job_valid": points.job_valid},
        features={"Hierarchy": False},
    )
    assert found.switches == {"JobReady": True, "ClusterOrder": False, "Hierarchy": False}
