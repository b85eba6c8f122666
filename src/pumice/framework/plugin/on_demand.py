"""Names that are all known from the start, and what stands under them, imported when it is asked for.

A command knows every plugin of every language by name, and runs the few that its policy names. What it does not run
costs a line of a table, not the module with all that this needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

V = TypeVar("V")


def _imported(place: str) -> Any:
    """What stands at a place, ``module:what``; its module is imported now if nobody has done so."""
    module, _, what = place.partition(":")
    return getattr(import_module(module), what)


class OnDemand(Mapping[str, V]):
    """A literal table ``name -> "module:what"``. Names are counted, listed and looked for without an import.

    ``read`` makes the value of a name out of what the module has; nothing is kept here, for Python keeps modules.
    """

    __slots__ = ("_places", "_read")

    def __init__(self, places: Mapping[str, str], read: Callable[[str, Any], V]) -> None:
        self._places = places
        self._read = read

    def __getitem__(self, name: str) -> V:
        return self._read(name, _imported(self._places[name]))

    def __contains__(self, name: object) -> bool:
        return name in self._places  # Mapping's own way would import it

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
