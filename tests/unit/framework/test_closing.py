"""The end of a session: what plugins say then, and that one which fails costs nobody the cycle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.testing.build import cluster, node, podgroup, pods, run
from pumice.volcano import points

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}]}]"


def of_a_plugin(**methods: Any) -> Any:
    """A plugin with these methods."""

    class Mine:
        def __init__(self, ssn: Session) -> None:
            pass

        def on_session_open(self, ssn: Session) -> None: ...

    for name, method in methods.items():
        setattr(Mine, name, method)
    return plugin("mine")(Mine)


def cycle(**methods: Any) -> Any:
    store = cluster(node("n"), podgroup("g", 2), pods("g", 2))
    return run(store, CONF, plugins=[of_a_plugin(**methods)])


def test_plugins_publish_figures_and_say_when_they_will_answer_otherwise() -> None:
    ran = cycle(figures=lambda self: {"mine.count": [1, 2]}, wakes_at=lambda self: 17.0)
    assert ran.outcome.figures["mine.count"].tolist() == [1, 2]
    assert isinstance(ran.outcome.figures["mine.count"], np.ndarray)
    assert ran.outcome.wakes_at == 17.0


def fails(self: Any, *ssn: Session) -> Any:
    raise RuntimeError("not now")


@points.session_close
def fails_at_the_end(self: Any) -> None:
    raise RuntimeError("not now")


@pytest.mark.parametrize(
    ("name", "method", "problem"),
    [
        pytest.param("figures", fails, "RuntimeError: not now", id="figures"),
        pytest.param("figures", lambda self: [1.0], "answered [1.0], wanted Mapping", id="figures without names"),
        pytest.param("wakes_at", fails, "RuntimeError: not now", id="when it will answer otherwise"),
        pytest.param("wakes_at", lambda self: "soon", "answered 'soon', wanted float | int | None", id="in words"),
        pytest.param("on_session_close", fails, "RuntimeError: not now", id="told of the end"),
        pytest.param("at_the_end", fails_at_the_end, "RuntimeError: not now", id="asked at the end"),
    ],
)
def test_a_plugin_that_fails_at_the_end_costs_nobody_the_cycle(name: str, method: Any, problem: str) -> None:
    ran = cycle(**{name: method})
    assert len(ran.binds) == 2 and list(ran.phases) == ["ns/g"]
    (fault,) = ran.outcome.faults
    assert (fault.subject, fault.plugin, fault.problem) == ("the end of the cycle", "mine", problem)
    assert fault.where.rpartition(":")[0] == __file__
