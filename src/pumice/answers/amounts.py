"""Amounts in units that people use: a GPU, a core or a tenth of one, a GiB."""

from __future__ import annotations

from pumice.model.quantity import format_quantity
from pumice.model.resources import CPU, MEMORY
from pumice.reasons.words import GIB, amount, per_unit

_MIB = 2.0**20


def step_of(name: str, asked: float) -> float:
    """Return the step in which an amount of a resource is changed, in canonical units. ``asked``: what one pod asks
    for, so that a step is not much larger than that."""
    if name == CPU:
        return 1000.0 if not asked or asked >= 1000.0 else 100.0
    if name == MEMORY:
        return GIB if not asked or asked >= GIB else 64 * _MIB
    return per_unit(name)


def amount_text(name: str, value: float) -> str:
    """Return ``8 GPUs``, ``4 cores``, ``16 GiB of memory``."""
    return amount(name, value, of_memory=True)


def quantity_text(name: str, value: float) -> str:
    """Return an amount as a manifest has it."""
    return format_quantity(name, value)
