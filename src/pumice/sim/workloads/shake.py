"""Move arrivals of a workload a little by seed, to see how much of a figure is due to the policy and how much to
chance.

Source: Tsafrir, Ouaknine, Feitelson, Reducing Performance Evaluation Sensitivity and Variability by Input Shaking,
2007.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import arriving


def shaken(scene: Scene, by_s: float, dice: np.random.Generator) -> Scene:
    """Return the scene with every arrival moved by up to ``by_s`` seconds, earlier or later, but not before the start.
    What is there at the start stays there: it is a backlog, and no arrival that could have been another."""
    works = []
    for work in scene.works:
        if work.arrival_s <= 0:
            works.append(work)
            continue
        earliest = max(work.arrival_s - by_s, 0.0)
        works.append(arriving(work, float(dice.uniform(earliest, work.arrival_s + by_s))))
    works.sort(key=lambda work: (work.arrival_s, work.key))
    return replace(scene, works=tuple(works))
