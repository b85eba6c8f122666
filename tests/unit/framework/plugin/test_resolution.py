"""Who answers where under a policy, without the plugins themselves."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS, Question
from pumice.framework.plugin.resolution import Reading, Unused, Wiring
from pumice.testing.build import policy


@plugin("two-points")
class TwoPoints:
    def __init__(self, ssn: Session) -> None: ...

    @points.job_order(reads=(ROWS,))
    def order(self, jobs: JobRows) -> Any:
        return jobs.rows

    @points.job_ready(reads=("two-points.share",))
    def ready(self, job: Job) -> int:
        return 3


@plugin("pairs")
@points.job_order
def pairs(ssn: Session, left: Job, right: Job) -> int:
    return left.row - right.row


@plugin("elsewhere")
@points.overused(reads=())
def elsewhere(ssn: Session, queue: Queue) -> bool:
    return False


def wiring(tiers: str, unused: dict[int, Unused] | None = None) -> Wiring:
    """Of plugins by name, tiers apart by ``|``."""
    listed = [{"plugins": [{"name": name} for name in tier.split()]} for tier in tiers.split("|")]
    return Wiring(policy(f"tiers: {listed}", actions="allocate", plugins=[TwoPoints, pairs, elsewhere]), unused or {})


def who(found: Wiring, point: Question) -> str:
    return " | ".join(" ".join(wire.plugin for wire in tier) for tier in found.tiers(point))


@pytest.mark.parametrize(
    ("tiers", "at_order", "at_ready"),
    [
        pytest.param("two-points pairs", "two-points pairs", "two-points", id="one tier"),
        pytest.param("pairs | two-points", "pairs | two-points", "two-points", id="two"),
        pytest.param("pairs | elsewhere | two-points", "pairs | two-points", "two-points", id="without empty ones"),
        pytest.param("elsewhere", "", "", id="nobody"),
    ],
)
def test_who_answers_by_tier(tiers: str, at_order: str, at_ready: str) -> None:
    found = wiring(tiers)
    assert (who(found, points.job_order), who(found, points.job_ready)) == (at_order, at_ready)


@pytest.mark.parametrize(
    ("unused", "at_order", "at_ready"),
    [
        pytest.param(Unused(points=(points.job_order,)), "pairs", "two-points", id="a point"),
        pytest.param(Unused(hooks=("ready",)), "two-points pairs", "", id="a method"),
        pytest.param(Unused(), "two-points pairs", "two-points", id="nothing"),
    ],
)
def test_what_an_instance_leaves_unused(unused: Unused, at_order: str, at_ready: str) -> None:
    found = wiring("two-points pairs", {0: unused})
    assert (who(found, points.job_order), who(found, points.job_ready)) == (at_order, at_ready)


def test_an_instance_says_what_it_leaves_unused() -> None:
    class Instance:
        unused_hooks = ("ready",)

    assert Unused.of(Instance()) == Unused((), ("ready",))
    assert Unused.of(object()) is None


def test_a_wire_finds_its_function_in_the_instance() -> None:
    found = wiring("two-points pairs")
    ((of_class, of_function),) = found.tiers(points.job_order)
    instance: Any = TwoPoints(None)  # type: ignore[arg-type]
    assert of_class.call_of(instance) == instance.order
    assert of_function.call_of(pairs) is pairs
    assert (of_class.position, of_class.form, of_function.position, of_function.form) == (0, "key", 1, "compare")


def test_what_follows_from_who_answers_where_is_found_out_once() -> None:
    found, asked = wiring("two-points | pairs"), []

    def forms(at: Any) -> set[str]:
        asked.append(1)
        return {wire.form for wire in at(points.job_order)}

    assert found.known("forms", forms) == found.known("forms", forms) == {"key", "compare"}
    assert asked == [1]


@pytest.mark.parametrize(
    ("tiers", "point", "covered"),
    [
        pytest.param(
            "two-points",
            points.job_order,
            ["two-points.share", "two-points.x"],
            id="its rows: all that is the plugin's",
        ),
        pytest.param("pairs", points.job_order, ["pairs.own"], id="nothing said: all that is the plugin's"),
        pytest.param("two-points", points.job_ready, ["two-points.share"], id="what it names"),
        pytest.param("elsewhere", points.overused, [], id="nothing"),
    ],
)
def test_which_columns_of_plugins_are_read(tiers: str, point: Question, covered: list[str]) -> None:
    reading = Reading.of(wiring(tiers).at(point), rows=True)
    every = ["two-points.share", "two-points.x", "pairs.own", "elsewhere.x"]
    assert [column for column in every if reading.covers(column)] == covered
