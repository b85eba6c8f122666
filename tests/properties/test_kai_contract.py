"""Every plugin of KAI's language keeps the contract of plugins, in clusters that they share."""

from __future__ import annotations

from pumice.kai.table import KAI
from pumice.ours.table import PLUGINS as OURS
from pumice.testing.check import check_plugin

PLUGINS = tuple(sorted({*KAI.plugins, *OURS}))
#: In which every hook is asked something: two of them speak of what few clusters have.
SEEDS = (0, 2, 19, 28, 29, 30, 32, 48)
#: Pages have no hook; claims are in none of these clusters.
ASKED_NOTHING = {"reflectjoborder", "snapshot", "dynamicresources"}


def test_every_plugin_of_kai_keeps_the_contract() -> None:
    """Memo on is memo off, a rollback leaves every answer equal, rows are answered as one by one, in any order."""
    checked = check_plugin(*PLUGINS, dialect="kai", seeds=SEEDS)
    assert checked.examples.keys() == set(PLUGINS)
    assert {key.partition(":")[0] for key in checked.asked} == set(PLUGINS) - ASKED_NOTHING
