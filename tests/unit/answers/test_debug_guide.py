"""The worked examples of the gang debugging guide, asked of explain: the same verdicts, and the cause of each wait."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.answers.codes import Code
from pumice.answers.explanation import Explanation, Verdict, explain
from pumice.answers.world import World
from pumice.testing.build import policy
from tests.cases.test_debug_guide import CASES, conf_of, objects_of

#: By case: what is in the way, and the first way out. The others start.
WAITS = {
    "A": ([Code.ROOM], "2 more nodes like n0"),
    "A2": ([Code.ROOM], "2 more nodes like n0"),
    "D": ([Code.INCOMPLETE, Code.ROOM], "1 more node like n0"),
    "E": ([Code.ROOM], "minMember 3 instead of 8"),
    "F": ([Code.ROOM], "2 more nodes like n0"),
    "G": ([Code.ROOM], "1 more node like n0"),
}


def explained(case: dict[str, Any]) -> Explanation:
    return explain(World(objects_of(case), policy(conf_of(case)), 0.0, ("volcano",)), "ml/tf")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_the_verdict_is_that_of_the_guide(case: dict[str, Any]) -> None:
    found = explained(case)
    if case["case"] not in WAITS:
        assert found.verdict is Verdict.STARTS and f"{case['bound']} of its pods" in found.parts[0].sentence
        return
    codes, way = WAITS[case["case"]]
    assert case["bound"] == 0 and found.verdict is Verdict.NEVER and found.is_checked
    assert [part.code for part in found.parts] == codes and found.ways[0].text[0].startswith(way)
