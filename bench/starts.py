"""How right predicted starts are, on Theta and on Philly: coverage of their intervals, and the error of their middle.

    python -m bench.starts --trace theta_2023 --days 60 --asks 60 --samples 8 --until-days 4

The trace is simulated once under a policy. At moments drawn by seed the starts of all waiting jobs are predicted, from
what is known then: objects of the cluster, jobs that have come and ended. What is compared with it, in the same run:
EASY backfilling with estimates as run times and no later jobs, and the number of jobs ahead times the mean time between
starts during the last day. Whatever lies beyond ``--until-days`` counts as that time, a wait as well as a prediction.

Predictions of one moment are right or wrong together: of all jobs that wait for one that runs, by when that ends. So
``within_95_error`` is the standard error of a ratio of sums over moments (Cochran, Sampling Techniques, 1977, §6), and
not that of as many independent predictions.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from msgspec.structs import replace

import pumice
from bench.waits import POLICIES
from pumice.columns.dtypes import I64, Bool
from pumice.framework.plugin.policy_file import Policy
from pumice.library.policies import policy_of
from pumice.model.events import Object
from pumice.model.workloads.past_job import PastJob
from pumice.ours.predictor import Predictor
from pumice.ours.start_scores import StartScores
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller, JobRun
from pumice.sim.engine import Engine
from pumice.sim.forecast import forecast
from pumice.sim.shell import Shell
from pumice.sim.starts.predicted import predicted_starts
from pumice.sim.starts.samples import Horizon, as_past_job
from pumice.sim.workloads.work import LooseGang
from pumice.sim.world import CycleReport, Simulation

TRACES = Path(__file__).parents[1].parent / "shared" / "traces"
DAY_S = 86_400.0


class Input(NamedTuple):
    """A trace, its cluster ("" for the one that it names), and the policy that it is simulated under."""

    path: str
    nodes: str
    policy: str


INPUTS = {
    "theta_2023": Input("swf:{}/theta-alcf/theta_2023.swf", "", POLICIES["aged"]),
    "theta_2022": Input("swf:{}/theta-alcf/theta_2022.swf", "", POLICIES["aged"]),
    "philly": Input("{}/philly-gavel", "125x4gpu", POLICIES["greedy"]),
}


class Asker:
    """Simulates the trace, and predicts at each of ``moments``, ascending."""

    def __init__(
        self,
        scene: Any,
        policy: Policy,
        moments: Sequence[float],
        horizon: Horizon,
        observe: Callable[[Asker], object] = lambda asker: None,
    ) -> None:
        self.policy, self.moments, self.horizon, self.observe = policy, list(moments), horizon, observe
        self.easy = policy_of(POLICIES["easy"]).policy
        self.cluster = SimCluster(Engine(0.0))
        self.controller = Controller(self.cluster)
        self.shell = Shell(self.cluster, policy, asks_why=False)
        self.predictor, self.scores = Predictor(), StartScores()
        self.past: list[PastJob] = []
        self.about: dict[str, PastJob] = {}
        self.starts: list[float] = []
        self.asked: list[dict[str, Any]] = []
        self.cpu_s = 0.0
        self.works = {work.key: work for work in scene.works}
        scene.enter(self.cluster, self.controller)
        self.controller.hooks.arrived.append(self._arrived)
        self.controller.hooks.started.append(self._started)
        self.controller.hooks.ended.append(self._ended)
        Simulation(self.cluster, self.controller, self._cycle).run()

    def _arrived(self, run: JobRun) -> None:
        group, pods = self.works[run.key].expand(self.cluster.engine.now)
        self.about[run.key] = as_past_job(LooseGang(group, tuple(pods)))
        self.past.append(self.about[run.key])

    def _started(self, run: JobRun) -> None:
        now = self.cluster.engine.now
        self.starts.append(now)
        self.scores.started(run.key, now)
        for each in self.asked:
            if each["job"] == run.key:
                each["waited_s"] = now - each["at"]

    def _ended(self, run: JobRun) -> None:
        if run.started is not None:
            self.predictor.learn(replace(self.about[run.key], ran_s=self.cluster.engine.now - run.started))

    def _cycle(self, now: float) -> CycleReport:
        report = self.shell.cycle(now)
        if self.moments and now >= self.moments[0]:
            while self.moments and now >= self.moments[0]:
                self.moments.pop(0)
            self._ask(now)
            self.observe(self)
        return report

    def _ask(self, now: float) -> None:
        began = time.process_time()
        objects = [obj for kind in get_args(Object) for obj in self.cluster.objects(kind)]
        since = now - 14 * DAY_S
        past = [job for job in self.past if job.arrived >= since]
        found = predicted_starts(
            objects, self.policy, now, self.horizon, past=past, predictor=self.predictor, scores=self.scores
        ).by_job
        self.cpu_s += time.process_time() - began
        if not found:
            return
        plain = forecast(objects, self.easy, now, self.horizon.until_s, awaited=frozenset(found))
        rate = sum(1 for at in self.starts if at >= now - DAY_S) / DAY_S
        order = sorted(found, key=lambda key: (self.about[key].arrived, key))
        for place, key in enumerate(order, 1):
            each = found[key]
            quantiles = (each.low_95_s, each.low_80_s, each.middle_s, each.high_80_s, each.high_95_s)
            limit = plain.jobs[key].starts_s
            self.asked.append(
                {
                    "job": key,
                    "at": now,
                    "quantiles": [min(quantile, self.horizon.until_s) for quantile in quantiles],
                    "easy": self.horizon.until_s if limit is None else limit,
                    "drain": min(place / rate, self.horizon.until_s) if rate else self.horizon.until_s,
                    "waited_s": None,
                }
            )


def figures(asked: Sequence[dict[str, Any]], until_s: float) -> dict[str, Any]:
    """Return coverage and median errors of the predictions of which the start is known."""
    known = [each for each in asked if each["waited_s"] is not None]
    if not known:
        return {"predictions": len(asked), "known": 0}
    moments = np.unique([each["at"] for each in known], return_inverse=True)[1]
    waits = np.minimum([each["waited_s"] for each in known], until_s)
    told = np.array([each["quantiles"] for each in known])
    errors = {name: np.abs(np.array([each[name] for each in known]) - waits) for name in ("easy", "drain")}
    errors["told"] = np.abs(told[:, 2] - waits)
    is_in_80 = (told[:, 1] <= waits) & (waits <= told[:, 3])
    is_in_95 = (told[:, 0] <= waits) & (waits <= told[:, 4])
    return {
        "predictions": len(asked),
        "known": len(known),
        "moments": int(moments.max()) + 1,
        "within_80": round(float(is_in_80.mean()), 4),
        "within_80_error": part_error(is_in_80, moments),
        "within_95": round(float(is_in_95.mean()), 4),
        "within_95_error": part_error(is_in_95, moments),
        "median_error_h": {name: round(float(np.median(each)) / 3600, 3) for name, each in errors.items()},
        "mean_error_h": {name: round(float(np.mean(each)) / 3600, 3) for name, each in errors.items()},
    }


def part_error(is_in: Bool, group: I64) -> float | None:
    """Return the standard error of the part that is in, if those of one group (n,) are in or out together; None if
    there is one group alone."""
    sizes = np.bincount(group)
    if len(sizes) < 2:
        return None
    off = np.bincount(group, is_in) - is_in.mean() * sizes
    return round(float(np.sqrt(len(sizes) / (len(sizes) - 1) * (off**2).sum()) / sizes.sum()), 4)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", choices=INPUTS, default="theta_2023")
    parser.add_argument("--asks", type=int, default=120)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--until-days", type=float, default=7.0)
    parser.add_argument(
        "--days", type=float, default=366.0, help="only jobs that arrive in the first days of the trace"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="write every prediction into this file")
    given = parser.parse_args(arguments)
    chosen = INPUTS[given.trace]
    inputs = pumice.load(chosen.path.format(TRACES), nodes=chosen.nodes or None).inputs
    scene = replace(
        inputs.scene, works=tuple(work for work in inputs.scene.works if work.arrival_s < DAY_S * given.days)
    )
    last = max(work.arrival_s for work in scene.works)
    dice = random.Random(given.seed)
    moments = sorted(dice.uniform(0.1 * last, last) for _ in range(given.asks))
    horizon = Horizon(given.until_days * DAY_S, given.samples)

    def observe(asker: Asker) -> None:
        print(json.dumps(figures(asker.asked, horizon.until_s)), file=sys.stderr, flush=True)

    asker = Asker(scene, policy_of(chosen.policy).policy, moments, horizon, observe)
    if given.keep:
        given.keep.write_text(json.dumps(asker.asked))
    found = figures(asker.asked, horizon.until_s)
    print(json.dumps({**found, "cpu_s_a_prediction": round(asker.cpu_s / given.asks, 2)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
