"""The change that lifts the nearest blocker of a case: after it the gang runs, or something else prevents it."""

from __future__ import annotations

from collections import Counter

import pytest

from pumice.model.blockers import Blocker
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.runtime.one_cycle import Answer, schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.volcano.table import volcano_registry
from tests.cases.hints.lifts import LITTLE, has_amount, is_known, lifted
from tests.cases.hints.test_hints import CASES, NOW, Any, conf_of
from tests.cases.hints.world import NAMESPACE, manifests

ASK = f"{NAMESPACE}/ask"


def objects_of(case: dict[str, Any]) -> list[Object]:
    decoder = Decoder()
    return [decoder.decode(raw) for raw in manifests(case["objects"])]  # type: ignore[misc]


def answer(case: dict[str, Any], objects: list[Object]) -> Answer:
    return schedule_once(objects, policy_of(conf_of(case), volcano_registry()), NOW)


def nearest(found: Answer) -> Blocker | None:
    """Return what prevents the gang, None when it runs."""
    runs = any(pod.startswith(f"{ASK}-") for pod in found.binds)
    return None if runs else next(iter(found.blockers.get(ASK, ())), None)


LIFTS = [(case, before) for case in CASES if (before := nearest(answer(case, objects_of(case)))) is not None]
KNOWN = [(case, before) for case, before in LIFTS if all(map(is_known, before.lift))]


def after(case: dict[str, Any], before: Blocker, less: float = 0.0) -> list[Blocker | None]:
    """Return what prevents it after all changes of the lift, for each way to make them."""
    worlds = [objects_of(case)]
    for change in before.lift:
        worlds = [new for each in worlds for new in lifted(each, change, less if has_amount(change) else 0.0)]
    return [nearest(answer(case, each)) for each in worlds]


each_lift = pytest.mark.parametrize(
    ("case", "before"), [pytest.param(case, before, id=case["case"]) for case, before in KNOWN]
)


@each_lift
def test_after_the_lift_it_runs_or_waits_for_something_else(case: dict[str, Any], before: Blocker) -> None:
    assert any(found is None or found.lift != before.lift for found in after(case, before))
    assert any(found is None or type(found) is not type(before) for found in after(case, before))


@pytest.mark.parametrize(
    ("case", "before"),
    [pytest.param(case, each, id=case["case"]) for case, each in KNOWN if any(map(has_amount, each.lift))],
)
def test_a_little_less_does_not_lift_it(case: dict[str, Any], before: Blocker) -> None:
    assert all(found is not None for found in after(case, before, LITTLE))


def test_many_cases_and_kinds_are_tried() -> None:
    assert len(KNOWN) >= 20
    assert len(Counter(type(change).__name__ for _, before in KNOWN for change in before.lift)) >= 7
