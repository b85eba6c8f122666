"""``--faults refused=2%,node-gone=6h,restart=1d``: a plan of what goes wrong."""

from __future__ import annotations

import difflib

import click

from pumice.cli.errors import InputError
from pumice.cli.params import SPAN
from pumice.sim.faults import FaultPlan

#: What may be written, and the field of FaultPlan that it fills: shares, and lengths of time.
SHARES = {"refused": "refused_share", "evict-refused": "evict_refused_share", "late": "late_share"}
SPANS = {
    "late-by": "late_max_s",
    "queued": "queued_max_s",
    "node-gone": "node_gone_every_s",
    "node-back": "node_back_after_s",
    "node-cordoned": "node_cordoned_every_s",
    "node-uncordoned": "node_cordoned_for_s",
    "pod-deleted": "pod_deleted_every_s",
    "pod-killed": "pod_killed_every_s",
    "redelivered": "redelivered_every_s",
    "restart": "restart_every_s",
    "api-gone": "api_gone_every_s",
    "api-back": "api_back_after_s",
}
_KNOWN = (*SHARES, *SPANS)


def parse_faults(text: str, quiet_after_s: float) -> FaultPlan:
    """Return the plan that a text describes. Raises: InputError with what was found and what is wanted."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in _KNOWN or not equals:
            close = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InputError(
                f"--faults: found {part.strip()[:40]!r}, wanted some of {', '.join(f'{k}=…' for k in _KNOWN)}{hint}"
            )
        field = SHARES.get(name) or SPANS[name]
        if field in found:
            raise InputError(f"--faults: found {name} twice")
        found[field] = _share(name, value) if name in SHARES else _span(name, value)
    return FaultPlan(quiet_after_s, **found)


def _share(name: str, text: str) -> float:
    number, factor = (text[:-1], 0.01) if text.endswith("%") else (text, 1.0)
    try:
        share = float(number) * factor
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise InputError(f"--faults: {name}: found {text[:40]!r}, wanted a share from 0 to below 1, such as 2%")
    return share


def _span(name: str, text: str) -> float:
    try:
        return SPAN.convert(text, None, None)
    except click.BadParameter as error:
        raise InputError(f"--faults: {name}: {error.message}") from None
