"""Tables of names whose values are imported when they are read.

A command knows every plugin of every language by name, and runs the few that its policy names. A plugin that does not
run costs a line of a table, and not the import of its module and of all that this needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

V = TypeVar("V")


def _imported(place: str) -> Any:
    """Return what is at ``module:what``, importing the module if it is not imported yet."""
    module, _, what = place.partition(":")
    return getattr(import_module(module), what)


class OnDemand(Mapping[str, V]):
    """A literal table ``name -> "module:what"``. Names are counted, listed and found without an import.

    ``read`` makes the value of a name from what the module has. Nothing is kept here, because Python keeps modules.
    """

    __slots__ = ("_places", "_read")

    def __init__(self, places: Mapping[str, str], read: Callable[[str, Any], V]) -> None:
        self._places = places
        self._read = read

    def __getitem__(self, name: str) -> V:
        # By name, so that a module which cannot be imported is an error only for a policy that names it.
        return self._read(name, _imported(self._places[name]))

    def __contains__(self, name: object) -> bool:
        return name in self._places  # the default of Mapping would import it

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
