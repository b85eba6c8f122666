"""What a frame of a record has, as values."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from pumice.runtime.files.model_values import encode_value


class StoreMemory(Struct, forbid_unknown_fields=True):
    """What a store keeps of earlier cycles: notes, and the hypernodes of jobs and of sub-jobs by uid."""

    notes: dict[str, float] = {}
    jobs: dict[str, str] = {}
    subs: dict[str, str] = {}


class Head(Struct, forbid_unknown_fields=True):
    """Of the first frame of a file: who wrote it, how its store reads objects, and the next cycle with its time."""

    pumice: str
    layout: str
    now: float
    cycle: int
    scheduler_names: list[str]
    default_queue: str
    use_priority_classes: bool
    node_pool: str
    remembered: StoreMemory


class CycleRecord(Struct, array_like=True, forbid_unknown_fields=True):
    """One cycle. ``digest``: of its decisions, "" for none. ``refusals``: reason by the number of the decision.
    ``answers``: of programs outside, in order: (whether it is an answer, the answer or why there is none)."""

    number: int
    now: float
    digest: str = ""
    refusals: dict[str, str] = {}
    answers: list[tuple[bool, Any]] = []


class StepRecord(Struct, array_like=True, forbid_unknown_fields=True):
    """Events, then a cycle on what they lead to, if one followed."""

    events: list[list[Any]]
    cycle: CycleRecord | None = None


class Frame(Struct, rename={"steps": "s", "values": "v", "head": "h", "conf": "p"}, omit_defaults=True):
    """Steps in order. ``values``: those that their events, or later ones, name by number. ``conf``: text of the policy
    from here on, and whether unknown parts of it are left out; None if it has not changed."""

    steps: list[msgspec.Raw] = []  # the text of a StepRecord each
    values: list[msgspec.Raw] = []
    head: Head | None = None
    conf: tuple[str, bool] | None = None


encode = encode_value
decode = msgspec.json.Decoder(Frame).decode
decode_step = msgspec.json.Decoder(StepRecord).decode
