"""The policy file of a running scheduler: checked again and again, and replaced as a whole if it is valid."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import PluginOption, Policy
from pumice.framework.plugin.registry import Registry
from pumice.kube.api.errors import clean
from pumice.kube.scheduler.logs import V2
from pumice.runtime.policy.conf import SIZE_MAX, conf_text, policy_of, shown_text, without_secrets

_log = logging.getLogger("pumice.conf")
_PROBLEMS_SHOWN_MAX = 5


class Conf(Struct, frozen=True):
    """A policy and the file from which it was read, without passwords. ``text`` (JSON): everything that it means, with
    defaults. ``hash``: of the text, so that files with equal meaning have equal hashes."""

    policy: Policy
    where: str
    file: str
    text: str
    hash: str


def conf_of(policy: Policy, where: str, file: str) -> Conf:
    text = json.dumps(described(policy), indent=2, sort_keys=True, default=str)
    return Conf(policy, where, file, text, sha256(text.encode()).hexdigest()[:16])


def described(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain values, without passwords."""
    return {
        "dialect": policy.dialect.name,
        "actions": [{"name": action.name, "arguments": dict(action.arguments)} for action in policy.actions],
        "tiers": [[_plugin(option) for option in tier] for tier in policy.tiers],
        "metrics": without_secrets(policy.metrics),
        **without_secrets(dict(policy.sections)),
    }


def _plugin(option: PluginOption) -> dict[str, Any]:
    known = {name: argument.default for name, argument in option.spec.arguments.items()}
    arguments = {name: option.arguments.get(name, default) for name, default in known.items()}
    return {"name": option.spec.name, "switches": dict(option.switches), "arguments": arguments}


class ConfFile:
    """The policy file. ``current`` is in force. ``changed``: called, on the loop, after it was replaced.

    An invalid file is an error at the start. If it becomes invalid later, that is logged in one line, and the old
    policy stays in force. ``refused``: why the present file is not in force, "" if it is.
    """

    def __init__(
        self,
        path: Path | None,
        registry: Registry,
        default: str,
        *,
        strict: bool = True,
        default_name: str = "the default conf",
    ) -> None:
        """``default``: text of the policy if no file is named, which never changes; ``default_name``: what the log
        calls it. Raises: PolicyError."""
        self.path = path
        self._where = default_name if path is None else str(path)
        self.refused = ""
        self.reloads = 0
        self.changed: Callable[[], None] = lambda: None
        self._registry, self._strict = registry, strict
        self._bytes = default.encode() if path is None else self._read(path)
        self.current = self._parsed(self._bytes)

    async def watch(self, every_s: float) -> None:
        """Look for changes until cancelled. The file is read each time, because links of a ConfigMap change without a
        trace."""
        while self.path is not None:
            await asyncio.sleep(every_s)
            try:
                self.look()
            except Exception:
                _log.exception("conf not looked at: a fault of this program or of a plugin")

    def look(self) -> bool:
        """Read the file. Return True if another policy is in force now."""
        if self.path is None:
            return False
        try:
            found = self._read(self.path)
            if found == self._bytes and not self.refused:
                return False
            new = self._parsed(found)
            self._check_language(new)
        except PolicyError as error:
            self._refuse(error)
            return False
        self._bytes, self.refused = found, ""
        if new.hash == self.current.hash:
            return False
        self.current = new
        self.reloads += 1
        self.log()
        self.changed()
        return True

    def _check_language(self, new: Conf) -> None:
        """Raise PolicyError for another language: its objects are others, which are not followed."""
        now, then = (conf.policy.dialect.name for conf in (self.current, new))
        if now != then:
            raise PolicyError(
                [f'{self.path}: dialect: found "{then}", but this runs under "{now}": restart the scheduler']
            )

    def _read(self, path: Path) -> bytes:
        try:
            if path.exists() and not path.is_file():  # reading a pipe would block
                raise PolicyError([f"{path}: cannot be read: it is not a file"])
            with path.open("rb") as file:
                return file.read(SIZE_MAX + 1)
        except OSError as error:
            raise PolicyError([f"{path}: cannot be read: {error.strerror or error}"]) from None

    def _parsed(self, raw: bytes) -> Conf:
        text = conf_text(raw, self._where)
        read = policy_of(text, self._registry, where=self._where, strict=self._strict)
        return conf_of(read, self._where, shown_text(text))

    def _refuse(self, error: PolicyError) -> None:
        """Log each way of being invalid once."""
        shown = "; ".join(clean(problem) for problem in error.problems[:_PROBLEMS_SHOWN_MAX])
        more = len(error.problems) - _PROBLEMS_SHOWN_MAX
        text = shown + (f"; and {more} more" if more > 0 else "")
        if text != self.refused:
            _log.error("conf not loaded, going on with %s: %s", self.current.hash, text)
        self.refused = text

    def log(self) -> None:
        """Log which policy is in force. The caller does it at the start, after its own first lines."""
        conf = self.current
        _log.info("Successfully loaded Scheduler conf %s from %s", conf.hash, conf.where)
        for warning in conf.policy.warnings:
            _log.warning("%s: ignored: %s", conf.where, clean(warning))
        if _log.isEnabledFor(V2):
            _log.log(V2, "Successfully loaded Scheduler conf as follows:")
            for line in conf.file.splitlines():
                _log.log(V2, "%s", line)
