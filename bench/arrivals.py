"""How right the arrivals are that predicted starts are simulated with: work that came, among draws of what may come.

    python -m bench.arrivals --trace theta_2022

At moments of a trace, drawn by seed, jobs that come later are drawn from those of the last 14 days, and the work of
those that come within 6 hours to 2 days is added up. Printed is how often what did come is within 80 and 95 % of the
draws, and how far from them it is (the continuous ranked probability score of logarithms: lower is better). Of so many
moments the standard error of a part is 2 to 3 %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

import pumice
from bench.starts import DAY_S, INPUTS, TRACES
from pumice.columns.dtypes import F64
from pumice.model.workloads.past_job import PastJob
from pumice.ours.predictor import Predictor
from pumice.sim.starts.samples import as_past_job, later_jobs
from pumice.sim.workloads.work import LooseGang, SimJob

#: With 39 draws the next value is below the least, or above the largest, in 5 of 100 cases.
DRAWS = 39
#: Intervals, and how many draws of each end are beyond them.
LEVELS = (("within_80", 4), ("within_95", 1))
HORIZONS_H = (6, 12, 24, 48)
_PAST_S = 14 * DAY_S
#: Node-hours added before logarithms are taken: less is no difference.
_BASE_H = 100.0


def past_of(trace: str) -> list[PastJob]:
    """Return the jobs of a trace with their true run times, by arrival."""
    chosen, found = INPUTS[trace], []
    for work in pumice.load(chosen.path.format(TRACES), nodes=chosen.nodes or None).inputs.scene.works:
        if isinstance(work, SimJob) and np.isfinite(work.duration_s):
            group, pods = work.expand(work.arrival_s)
            about = as_past_job(LooseGang(group, tuple(pods)))
            found.append(replace(about, ran_s=work.duration_s))
    return sorted(found, key=lambda job: (job.arrived, job.key))


def work_h(arrivals: F64, pods_h: F64) -> F64:
    """Return how much work comes within each of the horizons. Shapes (jobs,), (jobs,) -> (horizons,)."""
    return np.array([pods_h[(arrivals >= 0) & (arrivals < hours * 3_600)].sum() for hours in HORIZONS_H])


def draws(past: Sequence[PastJob], now: float, number: int) -> F64:
    """Return the work of some draws. Shape (DRAWS, horizons)."""
    found = []
    for i in range(DRAWS):
        dice = np.random.Generator(np.random.PCG64([number, i]))
        works = [
            work
            for work in later_jobs(past, now, HORIZONS_H[-1] * 3_600.0, Predictor(), dice)
            if isinstance(work, SimJob)
        ]
        pods_h = np.array([work.tasks[0].replicas * work.duration_s / 3_600 for work in works])
        found.append(work_h(np.array([work.arrival_s for work in works]), pods_h))
    return np.array(found)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", choices=INPUTS, default="theta_2022")
    parser.add_argument("--moments", type=int, default=200)
    given = parser.parse_args(arguments)
    jobs = past_of(given.trace)
    arrived = np.array([job.arrived for job in jobs])
    pods_h = np.array([job.pods * (job.ran_s or 0.0) / 3_600 for job in jobs])
    dice = np.random.default_rng(1)
    ranks, scores = [], []
    for number, now in enumerate(dice.uniform(arrived[0] + _PAST_S, arrived[-1] - 2 * DAY_S, given.moments).tolist()):
        since, until = np.searchsorted(arrived, (now - _PAST_S, now))
        drawn = np.log(draws(jobs[since:until], now, number) + _BASE_H)
        came = np.log(work_h(arrived - now, pods_h) + _BASE_H)
        ranks.append((drawn < came).sum(axis=0))
        spread = np.abs(drawn[:, None] - drawn[None]).mean(axis=(0, 1)) / 2
        scores.append(np.abs(drawn - came).mean(axis=0) - spread)
    rank, score = np.array(ranks), np.array(scores)
    for i, hours in enumerate(HORIZONS_H):
        within = {level: float(((rank[:, i] >= out) & (rank[:, i] <= DRAWS - out)).mean()) for level, out in LEVELS}
        print(json.dumps({"hours": hours, **within, "score": round(float(score[:, i].mean()), 3)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
