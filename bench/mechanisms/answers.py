"""``python -m bench.mechanisms.answers WORKLOAD…``: what each answer of the memo saves alone.

    .venv/bin/python -m bench.mechanisms.answers "moving, full" "tree 1k"

Each time that the memo has an answer, it is built again all the same, and the CPU time of that is added up: by module
and question, in hundredths of the CPU time of all cycles, without what is built here. This shows small savings, which
two runs of whole cycles do not. Answers that are recalled and kept by hand are not seen.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

import bench.mechanisms.__main__ as mechanisms
from bench.mechanisms.workloads import WORKLOADS
from pumice.framework.memo import Memo


class Answers:
    """``Memo.get`` and ``Memo.by_row``, which add up what they save."""

    def __init__(self) -> None:
        self.get, self.by_row = Memo.get, Memo.by_row
        self.saved: dict[str, float] = defaultdict(float)
        self.built_s = 0.0
        self._inside = False

    def got(self, memo: Memo, question: Any, rests_on: Any, build: Any, size: int = 0) -> Any:
        if self._inside or memo.recall(question, rests_on) is None:
            return self.get(memo, question, rests_on, build, size)
        self._add(question, build)
        return self.get(memo, question, rests_on, build, size)

    def got_by_row(self, memo: Memo, question: Any, rests_on: Any, stamps: Any, build: Any) -> Any:
        if not self._inside:
            self._add(question, lambda: build(np.arange(len(stamps))))
        return self.by_row(memo, question, rests_on, stamps, build)

    def _add(self, question: Any, build: Any) -> None:
        frame = sys._getframe(2)
        while (module := frame.f_globals["__name__"]).startswith("bench."):
            assert frame.f_back is not None
            frame = frame.f_back
        name = question[0] if isinstance(question, tuple) else question
        began, self._inside = process_time(), True
        try:
            build()
        finally:
            self._inside = False
        took = process_time() - began
        self.built_s += took
        self.saved[f"{module.removeprefix('pumice.')}: {name}"] += took


def main(workloads: Sequence[str]) -> int:
    """0: all were measured; 2: a workload is unknown."""
    unknown = [name for name in workloads if name not in WORKLOADS]
    if unknown or not workloads:
        print(f"workloads: found {unknown}, wanted some of {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    for name in workloads:
        answers = Answers()
        with patch.object(Memo, "get", answers.got), patch.object(Memo, "by_row", answers.got_by_row):
            cycles_s = mechanisms.run_here("", name, "cpu")["cpu_s"] - answers.built_s
        print(f"{name}: {cycles_s:.2f} CPU s")
        for each, saved in sorted(answers.saved.items(), key=lambda item: -item[1]):
            print(f"  {100 * saved / cycles_s:6.2f} % {each}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
