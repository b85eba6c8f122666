"""Names of task roles and their numbers."""

from __future__ import annotations


class RoleNames:
    """Number 0 is the empty role."""

    __slots__ = ("_number", "names")

    def __init__(self) -> None:
        self.names = [""]
        self._number = {"": 0}

    def number(self, name: str) -> int:
        """The number of a role, given on first sight."""
        found = self._number.get(name)
        if found is None:
            found = self._number[name] = len(self.names)
            self.names.append(name)
        return found

    def __getitem__(self, number: int) -> str:
        return self.names[number]
