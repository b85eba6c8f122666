"""Flags of Volcano's scheduler: Go's booleans and addresses, and flags without effect here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

import click
from msgspec import Struct

from pumice.cli.errors import InputError
from pumice.cli.output import say
from pumice.cli.params import SPAN

#: Flags of vc-scheduler that are taken, do nothing, and change no decision: name -> why.
MEANINGLESS = {
    "resync-period": "watched objects are not listed again periodically",
    "minimum-feasible-nodes": "all nodes are considered",
    "minimum-percentage-nodes-to-find": "all nodes are considered",
    "percentage-nodes-to-find": "all nodes are considered",
    "node-worker-threads": "there are no worker threads for nodes",
    "gate-removal-worker-num": "there are no worker threads for scheduling gates",
    "resource-sync-timeout": "no cycle starts before all objects are listed",
    "csi-storage": "capacities of CSI storage are taken into account wherever they are published",
    "ignored-provisioners": "the limits that CSINodes name are taken into account for every driver",
    "enable-pprof": "pprof is for Go programs; use py-spy",
    "log-flush-frequency": "every line is written immediately",
    "logtostderr": "the log goes to standard error",
    "alsologtostderr": "the log goes to standard error",
    "stderrthreshold": "the log goes to standard error",
    "log-dir": "the log goes to standard error",
    "log-file": "the log goes to standard error",
    "log-file-max-size": "the log goes to standard error",
    "log-backtrace-at": "errors are logged with a traceback",
    "add-dir-header": "the log has its own format: see --log-format",
    "skip-headers": "the log has its own format: see --log-format",
    "skip-log-headers": "the log has its own format: see --log-format",
    "one-output": "the log goes to standard error",
    "vmodule": "all modules have the same log level",
}
#: The same of its environment.
MEANINGLESS_ENVIRONMENT = {
    "BATCH_BIND_NUM": "binds are sent one by one, in parallel",
    "PANIC_ON_ERROR": "an error is logged, and a later cycle tries again",
}


class Unmet(Struct, frozen=True):
    """A request of a flag that is not met. ``harmless``: values for which nothing differs."""

    harmless: tuple[str, ...]
    why: str


#: Flags of vc-scheduler that would change decisions, and are refused.
UNMET = {
    "leader-elect-resource-lock": Unmet(("leases",), "only Leases are supported as locks"),
}
#: Feature gates of vc-scheduler -> the values that are obeyed here; any where nothing here hangs on it.
_ANY = (False, True)
GATES: Mapping[str, tuple[bool, ...]] = {
    "WorkLoadSupport": _ANY,
    "VolcanoJobSupport": _ANY,
    "PodDisruptionBudgetsSupport": _ANY,
    "QueueCommandSync": _ANY,
    "ResourceTopology": _ANY,
    "CronVolcanoJobSupport": _ANY,
    "CSIStorage": _ANY,
    "SchedulingGatesQueueAdmission": (True,),  # for the pods that ask for it, and for no others
    "PriorityClass": _ANY,
}
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")


class GoBool(click.ParamType[bool]):
    """A boolean of Go: ``--flag``, ``--flag=true``, ``--flag=false``."""

    name = "bool"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        text = str(value).lower()
        if text not in _TRUE + _FALSE:
            self.fail(f"found {text[:40]!r}, wanted true or false", param, ctx)
        return text in _TRUE


class Verbosity(click.ParamType[int]):
    """klog's verbosity: ``-v 4``, ``-v=4`` and ``--v=4``."""

    name = "level"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal() or len(text) > 3:
            self.fail(f"found {text[:40]!r}, wanted a number such as 4", param, ctx)
        return int(text)


class Redirection(click.ParamType[str]):
    """``2>&1``, with which Volcano's chart ends its arguments although no shell reads them."""

    name = "nothing"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != "2>&1":
            raise click.UsageError(f"Got unexpected extra argument ({str(value)[:60]})", ctx)
        return str(value)


GO_BOOL, VERBOSITY, REDIRECTION = GoBool(), Verbosity(), Redirection()


def go_flag(name: str, *, default: bool, help: str) -> Callable[[Any], Any]:
    """Return an option that means true by itself, and may have a value after ``=``."""
    return click.option(
        name, type=GO_BOOL, is_flag=False, flag_value="true", default=default, show_default=True, help=help
    )


def place(flag: str, text: str) -> tuple[str, int]:
    """Return (address, port) of ``address:port``; without an address, all addresses. Raises: InputError."""
    address, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{flag}: found {text[:60]!r}, wanted address:port, such as 127.0.0.1:8080 or :8080")
    return address.strip("[]"), int(port)


def labels_of(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (key, value) of each ``key:value``, several separated by commas. Raises: InputError. Source: Volcano,
    which uses nodes with any of these labels."""
    found = []
    for text in ",".join(texts).split(",") if texts else ():
        key, colon, value = (part.strip() for part in text.partition(":"))
        if not key or not colon or ":" in value:
            raise InputError(f"--node-selector: found {text[:60]!r}, wanted label:value, such as pool:batch")
        found.append((key, value))
    return tuple(found)


def gates_of(texts: Sequence[str]) -> dict[str, bool]:
    """Return the feature gates of ``Name=true,Other=false``, by name. Raises: InputError for those that are not
    supported."""
    found = dict(_gates(texts))
    for name, on in found.items():
        if name not in GATES:
            raise InputError(f"--feature-gates: {name[:60]}: unknown feature gate")
        if on not in GATES[name]:
            raise InputError(f"--feature-gates: {name}={str(on).lower()} is not supported: remove it")
    return found


def _gates(texts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    for text in ",".join(texts).split(",") if texts else ():
        name, equals, value = text.strip().partition("=")
        if not name or not equals or value.lower() not in _TRUE + _FALSE:
            raise InputError(f"--feature-gates: found {text[:60]!r}, wanted Name=true or Name=false")
        yield name, value.lower() in _TRUE


def not_obeyed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all flags of Volcano's scheduler that a command does not have. One without effect prints a note, and so does
    such an environment variable. One that would change decisions is refused."""

    @wraps(command)
    def checked(**given: Any) -> Any:
        for name, unmet in UNMET.items():
            for value in given.pop(_key(name)):
                if value.lower() not in unmet.harmless:
                    raise InputError(f"--{name}={value[:40]}: not supported: {unmet.why}")
        _refuse_shares_of_schedulers(os.environ)
        for name, why in MEANINGLESS.items():
            if given.pop(_key(name)):
                say(f"note: --{name} has no effect here: {why}")
        for name, why in MEANINGLESS_ENVIRONMENT.items():
            if os.environ.get(name):
                say(f"note: {name} has no effect here: {why}")
        return command(**given)

    found: Any = checked
    for name in reversed([*MEANINGLESS, *UNMET]):
        found = click.option(
            f"--{name}", _key(name), multiple=True, is_flag=False, flag_value="true", hidden=True, help="No effect."
        )(found)
    return found  # type: ignore[no-any-return]  # click's decorators are not typed so


def _refuse_shares_of_schedulers(environ: Mapping[str, str]) -> None:
    """Raise InputError if this should be one of several schedulers, each with its own pods and nodes."""
    if environ.get("MULTI_SCHEDULER_ENABLE", "").lower() in _TRUE and environ.get("SCHEDULER_NUM", "1") != "1":
        raise InputError("MULTI_SCHEDULER_ENABLE is not supported: use --scheduler-sharding-mode=hard")


def _key(name: str) -> str:
    return "not_obeyed_" + name.replace("-", "_")


#: Flags of leader election, in the order of ``--help``.
_ELECTION = (
    go_flag("--leader-elect", default=True, help="Schedule only while holding the Lease."),
    click.option(
        "--leader-elect-lease-duration",
        type=SPAN,
        default="15s",
        show_default=True,
        help="How long others wait for a leader that does not renew its Lease.",
    ),
    click.option(
        "--leader-elect-renew-deadline",
        type=SPAN,
        default="10s",
        show_default=True,
        help="How long a leader tries to renew before it stops to lead.",
    ),
    click.option(
        "--leader-elect-retry-period", type=SPAN, default="2s", show_default=True, help="Time between two tries."
    ),
    click.option(
        "--leader-elect-resource-name",
        default="",
        help="Name of the Lease. Default: volcano, or kai-scheduler under dialect: kai.",
    ),
    click.option(
        "--leader-elect-resource-namespace",
        "--lock-object-namespace",
        "lease_namespace",
        default="",
        help="Namespace of the Lease. Default: volcano-system, or kai-scheduler under dialect: kai.",
    ),
)


def election_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of leader election."""
    for option in reversed(_ELECTION):
        command = option(command)
    return command
