"""Flags as Volcano's scheduler writes them: Go's booleans and addresses, and those that mean nothing here."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from pumice.cli.errors import InputError
from pumice.cli.output import say

#: Flags of vc-scheduler that are taken and do nothing: name -> why.
MEANINGLESS = {
    "resync-period": "what is watched is never listed again for the sake of it",
    "minimum-feasible-nodes": "every node is looked at",
    "minimum-percentage-nodes-to-find": "every node is looked at",
    "percentage-nodes-to-find": "every node is looked at",
    "node-worker-threads": "nodes need no workers of their own",
    "gate-removal-worker-num": "gates need no workers of their own",
    "resource-sync-timeout": "no cycle begins before everything is listed",
    "csi-storage": "volumes are not scheduled yet",
    "ignored-provisioners": "volumes are not scheduled yet",
    "node-selector": "every node is taken; use taints or a nodeSelector",
    "disable-default-scheduler-config": "a policy file that is named must be right at the start",
    "scheduler-sharding-mode": "nodes are not shared out yet",
    "scheduler-sharding-name": "nodes are not shared out yet",
    "feature-gates": "there are none",
    "cache-dumper": "a dump is written when SIGUSR2 asks for it",
    "enable-pprof": "profiles are Go's; use py-spy",
    "ca-cert-file": "HTTP is plain, and on loopback unless it is told otherwise",
    "tls-cert-file": "HTTP is plain, and on loopback unless it is told otherwise",
    "tls-private-key-file": "HTTP is plain, and on loopback unless it is told otherwise",
    "log-flush-frequency": "every line is written at once",
    "logtostderr": "the log goes to standard error",
    "alsologtostderr": "the log goes to standard error",
    "stderrthreshold": "the log goes to standard error",
    "log-dir": "the log goes to standard error",
    "log-file": "the log goes to standard error",
    "log-file-max-size": "the log goes to standard error",
    "log-backtrace-at": "faults have their traceback",
    "add-dir-header": "lines have a form of their own: see --log-format",
    "skip-headers": "lines have a form of their own: see --log-format",
    "skip-log-headers": "lines have a form of their own: see --log-format",
    "one-output": "the log goes to standard error",
    "vmodule": "levels are the same everywhere",
    "leader-elect-resource-lock": "a Lease is the only lock there is",
}
#: The same of its environment.
MEANINGLESS_ENVIRONMENT = {
    "BATCH_BIND_NUM": "binds go out one by one, many at the same time",
    "MULTI_SCHEDULER_ENABLE": "one scheduler at a time decides, about all pods",
    "DEBUG_SOCKET_DIR": "the log level stays as it is at the start",
    "PANIC_ON_ERROR": "a fault is logged, and a later cycle tries again",
}
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")


class GoBool(click.ParamType[bool]):
    """``--flag``, ``--flag=true``, ``--flag=false``."""

    name = "bool"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        text = str(value).lower()
        if text not in _TRUE + _FALSE:
            self.fail(f"found {text[:40]!r}, wanted true or false", param, ctx)
        return text in _TRUE


class Verbosity(click.ParamType[int]):
    """klog's ``-v 4``, ``-v=4`` and ``--v=4``."""

    name = "level"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal() or len(text) > 3:
            self.fail(f"found {text[:40]!r}, wanted a number such as 4", param, ctx)
        return int(text)


GO_BOOL, VERBOSITY = GoBool(), Verbosity()


def go_flag(name: str, *, default: bool, help: str) -> Callable[[Any], Any]:
    """An option that stands for true by itself, and may be given a value after ``=``."""
    return click.option(
        name, type=GO_BOOL, is_flag=False, flag_value="true", default=default, show_default=True, help=help
    )


def place(flag: str, text: str) -> tuple[str, int]:
    """(address, port) of ``address:port``; without address: every one. Raises: InputError."""
    address, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{flag}: found {text[:60]!r}, wanted address:port, such as 127.0.0.1:8080 or :8080")
    return address.strip("[]"), int(port)


def without_meaning(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with all flags of Volcano's scheduler that do nothing here. Each that is given gets a note, and so
    does each variable of its environment."""

    @wraps(command)
    def told(**given: Any) -> Any:
        for name, why in MEANINGLESS.items():
            if given.pop(_key(name)):
                say(f"note: --{name} does nothing here: {why}")
        for name, why in MEANINGLESS_ENVIRONMENT.items():
            if os.environ.get(name):
                say(f"note: {name} does nothing here: {why}")
        return command(**given)

    found: Any = told
    for name in reversed(MEANINGLESS):
        found = click.option(
            f"--{name}", _key(name), multiple=True, is_flag=False, flag_value="true", hidden=True, help="Does nothing."
        )(found)
    return found  # type: ignore[no-any-return]  # click's decorators are not typed so


def _key(name: str) -> str:
    return "ignored_" + name.replace("-", "_")
