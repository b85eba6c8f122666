"""cdp: who is spared, until when, and what cannot be read of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.model.pod import Pod, PodCondition
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.plugins.cdp import COOLDOWN_KEY, cooldown

CONF = "actions: reclaim\ntiers: [{plugins: [{name: cdp}]}]"
NOW = 1000.0
PLACED = (PodCondition("PodScheduled", "True", last_transition=900.0),)


def opened(now: float = NOW, **one: Any) -> Session:
    """A pod on a node, and one that waits."""
    there = pod("t", "g", on="n", **{"labels": {COOLDOWN_KEY: "2m"}, "conditions": PLACED, **one})
    return session(cluster(node("n"), podgroup("g", phase="Inqueue"), there, pod("w", "g")), CONF, now=now)


def may_go(ssn: Session) -> bool:
    row = {each.name: row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None}
    found = ssn.hooks.plugin("cdp").evictable(Task(ssn.tables, row["w"]), Candidates(ssn.tables, np.array([row["t"]])))
    return bool(found[0])


@pytest.mark.parametrize(
    ("now", "one", "goes"),
    [
        pytest.param(NOW, {}, False, id="its cooldown lasts"),
        pytest.param(1020.0, {}, True, id="it is over"),
        pytest.param(NOW, {"labels": {}}, True, id="none"),
        pytest.param(NOW, {"labels": {}, "annotations": {COOLDOWN_KEY: "2m"}}, False, id="as an annotation"),
        pytest.param(
            NOW, {"annotations": {COOLDOWN_KEY: "1h"}, "labels": {COOLDOWN_KEY: "1s"}}, True, id="the label first"
        ),
        pytest.param(NOW, {"labels": {COOLDOWN_KEY: "600abcde"}}, True, id="no duration"),
        pytest.param(NOW, {"labels": {COOLDOWN_KEY: "-5m"}}, True, id="below nothing"),
        pytest.param(NOW, {"labels": {COOLDOWN_KEY: "9" * 300 + "h"}}, True, id="a number without end"),
        pytest.param(NOW, {"conditions": ()}, True, id="nobody said when it was placed"),
        pytest.param(
            NOW, {"conditions": (PodCondition("PodScheduled", "False", last_transition=900.0),)}, True, id="not"
        ),
        pytest.param(NOW, {"phase": "Pending"}, True, id="bound and not running"),
    ],
)
def test_who_is_spared(now: float, one: dict[str, Any], goes: bool) -> None:
    assert may_go(opened(now, **one)) is goes


def test_it_wakes_when_a_cooldown_ends() -> None:
    assert opened().hooks.plugin("cdp").wakes_at() == 1020.0
    assert opened(1020.0).hooks.plugin("cdp").wakes_at() is None


def test_the_label_counts_also_where_it_cannot_be_read() -> None:
    both = Pod("ns", "p", "u", pod("x").spec, labels={COOLDOWN_KEY: "x"}, annotations={COOLDOWN_KEY: "1m"})
    assert cooldown(both) == 0.0
