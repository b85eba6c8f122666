"""What all blockers have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict

from pumice.model.blockers.changes import Change, NotKnown


class Blocker(Struct, frozen=True):
    """One obstacle to the start of a job."""

    code: ClassVar[str] = ""
    #: Why a kind without a ``lift`` of its own knows no change.
    no_lift: ClassVar[str] = ""

    @property
    def lift(self) -> tuple[Change, ...]:
        """Return the smallest changes after which it would not block the job, all of them together."""
        return (NotKnown(self.no_lift),)

    @property
    def plain(self) -> dict[str, Any]:
        """Return it as a dictionary for JSON, ``code`` first. Structs inside are dictionaries too."""
        # ``asdict`` leaves inner values as they are, and only blockers get a code.
        return {"code": self.code, **{name: _plain(value) for name, value in asdict(self).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Blocker):
        return value.plain
    if isinstance(value, Struct):
        return {name: _plain(each) for name, each in asdict(value).items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
