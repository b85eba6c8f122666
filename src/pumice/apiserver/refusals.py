"""Answers other than success: Kubernetes' Status objects, with the texts that clients know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj


class Cause(Struct, frozen=True):
    """An invalid field. ``reason``: FieldValueRequired, FieldValueInvalid, …"""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class Refusal(Exception):
    """A request that is not carried out. ``status()``: body of the answer."""

    def __init__(
        self, code: int, reason: str, message: str, details: Obj | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self._details = details

    def status(self) -> Obj:
        details = dict(self._details or {})
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        found: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details or self._details is not None:
            found["details"] = details
        return found | {"code": self.code}


def success(**details: Any) -> Obj:
    """Return the Status of something that was done without a resulting object."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def not_found(full_name: str, name: str) -> Refusal:
    """Return 404. ``full_name``: the plural with its group, ``queues.scheduling.volcano.sh``."""
    return Refusal(404, "NotFound", f'{full_name} "{name}" not found', _named(full_name, name))


def no_such_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(full_name: str, name: str) -> Refusal:
    return Refusal(409, "AlreadyExists", f'{full_name} "{name}" already exists', _named(full_name, name))


def conflict(full_name: str, name: str, why: str, causes: Sequence[Cause] = ()) -> Refusal:
    message = f'Operation cannot be fulfilled on {full_name} "{name}": {why}'
    return Refusal(409, "Conflict", message, _named(full_name, name) | _caused(causes))


def modified(full_name: str, name: str) -> Refusal:
    """Return 409: the client started from another resourceVersion than the present one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(full_name, name, why)


def forbidden(full_name: str, name: str, why: str) -> Refusal:
    return Refusal(403, "Forbidden", f'{full_name} "{name}" is forbidden: {why}', _named(full_name, name))


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> Refusal:
    """Return 422 with all invalid fields."""
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    text = listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
    details = {"name": name, "kind": kind, **({"group": group} if group else {})}
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details | _caused(causes))


def expired(why: str) -> Refusal:
    """Return 410: the state from which the client wants to continue is no longer kept."""
    return Refusal(410, "Expired", why)


def method_not_allowed() -> Refusal:
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media(found: str, wanted: str) -> Refusal:
    return Refusal(415, "UnsupportedMediaType", f"the body is of type {found[:100]!r}, wanted {wanted}")


def too_large(what: str, most: int) -> Refusal:
    return Refusal(413, "RequestEntityTooLarge", f"{what} is larger than {most} bytes")


def too_many(why: str) -> Refusal:
    return Refusal(429, "TooManyRequests", why, retry_after_s=1)


def _named(full_name: str, name: str) -> Obj:
    plural, _, group = full_name.partition(".")
    return {"name": name, "kind": plural, **({"group": group} if group else {})}


def _caused(causes: Sequence[Cause]) -> Obj:
    if not causes:
        return {}
    return {"causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]}
