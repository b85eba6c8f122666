"""Free devices of nodes, counted once and carried on while claims get devices."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from pumice.model.devices.claims import DeviceOption
from pumice.placing.claims.free_devices import FreeDevices
from pumice.placing.claims.offers import offers_of
from pumice.testing.devices import offered
from tests.unit.placing.claims.kit import on, opened, world

OPTIONS = (DeviceOption("gpu.com"), DeviceOption("gpu.com", selectors=('device.attributes["gpu.com"].model == "a"',)))


@pytest.mark.parametrize("in_network", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_counts_after_devices_were_given_are_those_of_counting_anew(seed: int, in_network: bool) -> None:
    dice = Random(seed)
    slices = [offered(name, each=tuple({"model": dice.choice("ab")} for _ in range(5))) for name in ("n1", "n2")]
    if in_network:
        slices.append(offered("", 3, nodes=on("n2")))
    offers = offers_of(opened(world(*slices)))
    now = np.array([dice.random() < 0.9 for _ in range(len(offers))])
    found = FreeDevices(offers, now, now, np.zeros(0), np.zeros(0))
    for _ in range(3):
        for option in OPTIONS:
            found.on_nodes(option, soon=dice.random() < 0.5)
        now = found.now.copy()
        given = dice.sample(now.nonzero()[0].tolist(), 2)
        now[given] = False
        found = found.without(now, given)
        anew = FreeDevices(offers, now, now, np.zeros(0), np.zeros(0))
        for option in OPTIONS:
            assert (found.on_nodes(option, soon=False) == anew.on_nodes(option, soon=False)).all()
