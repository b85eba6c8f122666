"""Typical pods in a policy file: what lines say, what is refused, and that a policy goes by them."""

from __future__ import annotations

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.ours.fragments import Ask
from pumice.ours.typical_pods import LINES_MAX, TypicalPods, read_typical, written
from tests.unit.kai.cluster import job, node, queue, store
from tests.unit.ours.test_gpuplacement import placed, sharing

MODEL = "nvidia.com/gpu.product"


def test_lines_say_how_many_ask_for_what_on_which_models() -> None:
    said = read_typical("120 8 0.46\n\n 35 16.4 2 V100|T4\n3 0.5 0\n")
    assert said == [
        TypicalPods(120.0, Ask(8000.0, 1, 460.0), ()),
        TypicalPods(35.0, Ask(16400.0, 2, 1000.0), ("V100", "T4")),
        TypicalPods(3.0, Ask(500.0, 0, 0.0), ()),
    ]
    assert read_typical(written(said)) == said


@pytest.mark.parametrize(
    "line", ["1 2", "x 1 1", "0 1 1", "1 -1 1", "1 1 1.5", "1 1 1001", "1e10 1 1", "nan 1 1", "1 inf 1", "1 1 1 T4 x"]
)
def test_what_means_nothing_is_named_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: found .*, wanted PODS CORES GPUS"):
        read_typical(f"1 1 1\n{line}")
    with pytest.raises(PolicyError, match="argument typical: line 1"):
        placed(store(node("a", 1), queue("q")), "fgd", typical=line)
    with pytest.raises(ValueError, match="wanted at most"):
        read_typical("1 1 1\n" * (LINES_MAX + 1))


@pytest.mark.parametrize(("typical", "where"), [("", "a"), ("9 1 0.4", "a"), ("9 1 1", "b"), ("9 1 2", "a")])
def test_a_pod_goes_where_expected_pods_lose_least(typical: str, where: str) -> None:
    """Pods that ask for whole GPUs lose one on the empty node, and nothing where half of one is left; pods of two
    could use neither, and those that ask for less than half can use both: then the first name's node is taken."""
    found = store(*(node("a", 1), node("b", 4), queue("q")), *sharing("p", "b", 0.5), *sharing("j", "", 0.5))
    assert placed(found, "fgd", typical=typical).binds == {"j-0": where}


def test_models_that_expected_pods_name_are_kept_for_them() -> None:
    found = store(
        *(node("a", 2, labels={MODEL: "T4"}), node("b", 2, labels={MODEL: "P100"}), queue("q")), *job("j", "q", [""])
    )
    assert placed(found, "fgd", typical="9 1 1 T4").binds == {"j-0": "b"}
    assert placed(found, "fgd", typical="9 1 1 P100").binds == {"j-0": "a"}
