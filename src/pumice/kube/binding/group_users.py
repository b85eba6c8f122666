"""Which pods or requests use a group of shared GPUs, kept while both change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence


class GroupUsers:
    """The users of each group, by key. A group without users is not in it."""

    def __init__(self) -> None:
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._groups: dict[str, tuple[str, ...]] = {}

    def put(self, key: str, groups: Sequence[str]) -> None:
        """Set the groups of a user. Without any, it is none."""
        self.drop(key)
        if groups:
            self._groups[key] = tuple(groups)
        for group in groups:
            self._users[group].add(key)

    def drop(self, key: str) -> None:
        """Remove a user from all of its groups."""
        # By user, because there may be thousands of groups, and each event about a user comes here.
        for group in self._groups.pop(key, ()):
            self._users[group].discard(key)
            if not self._users[group]:
                del self._users[group]

    def of(self, group: str) -> list[str]:
        """Return the users of a group, sorted."""
        return sorted(self._users.get(group, ()))

    def __contains__(self, group: str) -> bool:
        return group in self._users

    def __iter__(self) -> Iterator[str]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)
