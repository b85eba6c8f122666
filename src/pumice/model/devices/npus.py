"""NPUs that an agent lists on its node, as JSON. Source: HAMi's annotation ``hami.io/node-register-<word>``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

_CHARACTERS_MAX, _CARDS_MAX, _AMOUNT_MAX = 1 << 17, 64, 1 << 40


class Npu(Struct, frozen=True):
    """One NPU. ``count``: how many containers can share it. ``memory``: MiB. ``network``: number of its network, None
    if it is not given."""

    id: str
    count: int
    memory: int
    cores: int
    healthy: bool = True
    network: int | None = None


@lru_cache(maxsize=4096)
def listed_npus(text: str) -> tuple[Npu, ...] | str:
    """Return the NPUs in an annotation, or a text that says what is wrong with it."""
    # Bounded before it is parsed: the annotation comes from the cluster and may be of any size.
    if len(text) > _CHARACTERS_MAX:
        return f"found {len(text)} characters, wanted at most {_CHARACTERS_MAX}"
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return "found no JSON, wanted a list of devices"
    if not isinstance(given, list) or not 1 <= len(given) <= _CARDS_MAX:
        return f"wanted a list of 1 to {_CARDS_MAX} devices"
    # All or nothing: of a list that is wrong in one place, nothing is sure.
    found = [_npu(each) for each in given]
    npus = tuple(each for each in found if each is not None)
    if len(npus) < len(found) or len({each.id for each in npus}) < len(npus):
        return "wanted an id of its own, count, devmem and devcore of each device"
    return npus


def _npu(given: object) -> Npu | None:
    """Return one NPU, None if a field is missing or out of bounds."""
    if not isinstance(given, Mapping):
        return None
    name, network = given.get("id"), given.get("customInfo", given.get("custominfo"))
    amounts = [given.get(key, 0) for key in ("count", "devmem", "devcore")]
    # bool is excluded, since it is an int in Python.
    wrong = any(not isinstance(each, int) or isinstance(each, bool) or not 0 <= each <= _AMOUNT_MAX for each in amounts)
    if wrong or not isinstance(name, str) or not name or len(name) > 253:
        return None
    number = network.get("NetworkID") if isinstance(network, Mapping) else None
    if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) < _AMOUNT_MAX:
        number = None
    count, memory, cores = amounts
    return Npu(name, count, memory, cores, given.get("health") is not False, None if number is None else int(number))
