"""Every built-in plugin keeps the contract of plugins: 600 examples each, in clusters that they share."""

from __future__ import annotations

import pytest

from pumice.testing.check import BESIDE, check_plugin
from pumice.volcano.table import volcano_registry

BUILT_IN = tuple(sorted(volcano_registry().dialects["volcano"].plugins))
#: Each part is a process's work of a quarter of a minute.
PARTS = 4
SEEDS = 48
EXAMPLES = 600
#: Without a verb it has no hook: it is asked with some below.
ASKED_BY_NO_DEFAULT = "extender"


@pytest.mark.parametrize("part", range(PARTS))
def test_every_built_in_plugin_keeps_the_contract(part: int) -> None:
    """Memo on is memo off, a rollback leaves every answer equal, rows are answered as one by one, in any order."""
    checked = check_plugin(*BUILT_IN, seeds=range(part * SEEDS, (part + 1) * SEEDS))
    assert checked.examples.keys() == set(BUILT_IN)
    assert min(checked.examples.values()) >= EXAMPLES // PARTS
    asked = {key.partition(":")[0] for key in checked.asked}
    assert asked == set(BUILT_IN) - {ASKED_BY_NO_DEFAULT}


def test_drf_between_queues_keeps_the_contract() -> None:
    """With hierarchy, which proportion does not go with."""
    beside = [name for name in BESIDE if name != "proportion"]
    checked = check_plugin("drf", switches={"enabledHierarchy": True}, beside=beside)
    assert {"drf: Drf.queue_order at queue_order", "drf: Drf.reclaimable at reclaimable"} <= checked.asked.keys()


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("binpack", {"binpack.resources": "nvidia.com/gpu", "binpack.resources.nvidia.com/gpu": 5}),
        ("nodeorder", {"mostrequested.weight": 2, "leastrequested.weight": 0, "podaffinity.weight": 3}),
        ("predicates", {"predicate.PodAffinityEnable": False, "predicate.CacheEnable": True}),
        ("sla", {"sla-waiting-time": "1m"}),
        ("overcommit", {"overcommit-factor": 1.0}),
        ("gang", {"halvesGoAfter": "1m"}),
        ("extender", {"extender.predicateVerb": "x", "extender.prioritizeVerb": "y", "extender.ignorable": True}),
    ],
)
def test_a_plugin_keeps_the_contract_with_other_arguments(plugin: str, arguments: dict[str, object]) -> None:
    assert check_plugin(plugin, arguments=arguments, seeds=range(12)).examples[plugin]
