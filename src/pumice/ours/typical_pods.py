"""Read and write the list of typical pods in a policy file, one kind per line: ``PODS CORES GPUS [MODEL|MODEL]``.

``120 8 0.5`` means 120 pods that ask for 8 cores and half a GPU. ``35 16 2 V100|T4`` may run on these models only.
Other requests, such as memory and volumes, do not affect how GPUs are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from pumice.ours.fragments import WHOLE, Ask

LINES_MAX = 10_000
_FORM = "wanted PODS CORES GPUS [MODEL|MODEL]"
_PODS_MAX, _CORES_MAX, _GPUS_MAX = 1e9, 1e5, 1000


class TypicalPods(NamedTuple):
    """A group of equal pods: their number, their request, and the ``models`` on which they may run (empty: all
    models)."""

    pods: float
    ask: Ask
    models: tuple[str, ...]


def read_typical(text: str) -> list[TypicalPods]:
    """Read typical pods, one kind per line; blank lines are skipped.

    Raises: ValueError with the line, what was found and what was wanted.
    """
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        raise ValueError(f"found {len(lines):,} lines, wanted at most {LINES_MAX:,}")
    return [_read(number, line.split()) for number, line in enumerate(lines, 1) if line.strip()]


def written(pods: Iterable[TypicalPods]) -> str:
    """Return the text that ``read_typical`` reads as these pods."""
    # 17 significant digits read back as the same number.
    return "".join(
        f"{each.pods:.17g} {each.ask.milli_cpu / 1000.0:.17g} {each.ask.devices * each.ask.milli / WHOLE:.17g}"
        f" {'|'.join(each.models)}".rstrip()
        + "\n"
        for each in pods
    )


def _read(number: int, words: list[str]) -> TypicalPods:
    """Read the words of one line.

    Raises: ValueError with the line, what was found and what was wanted.
    """
    try:
        pods, cores, gpus = (float(word) for word in words[:3])
    except ValueError:
        raise _wrong(number, words) from None
    whole = gpus >= 1
    good = 0 < pods <= _PODS_MAX and 0 <= cores <= _CORES_MAX and 0 <= gpus <= _GPUS_MAX and len(words) <= 4
    if not good or (whole and gpus != math.floor(gpus)):
        raise _wrong(number, words)
    milli = WHOLE if whole else float(round(WHOLE * gpus))
    # Rounding removes the noise of 1000 * cores, so that equal lines give equal requests.
    ask = Ask(round(1000.0 * cores, 3), int(gpus) if whole else int(milli > 0), milli)
    return TypicalPods(pods, ask, tuple(words[3].split("|")) if len(words) == 4 else ())


def _wrong(number: int, words: list[str]) -> ValueError:
    """Return the error for a line that does not have the wanted form."""
    return ValueError(f'line {number}: found "{" ".join(words)[:60]}", {_FORM}')
