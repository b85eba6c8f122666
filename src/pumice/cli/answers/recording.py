"""``--record`` of the commands that run cycles, and the policy of commands that read a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from pumice.cli.errors import InputError
from pumice.cli.output import say
from pumice.cli.params import SPAN

if TYPE_CHECKING:
    from pumice.framework.plugin.policy_file import Policy
    from pumice.kube.scheduler.live import Live
    from pumice.runtime.record.recorder import Recorder
    from pumice.runtime.record.replay import PolicyOf

_FLUSH_S = 10.0  # how long cycles of a scheduler that runs may be in memory alone
FOLDER = click.Path(path_type=Path, file_okay=False)


class RecordFlags(Struct, frozen=True):
    """Where to record, at most how many megabytes, and at most how many seconds."""

    folder: Path
    megabytes: int
    age_s: float


_OPTIONS = (
    click.option(
        "--record", type=FOLDER, metavar="DIR", help="Record the input of every cycle, for pumice replay and story."
    ),
    click.option(
        "--record-size",
        type=click.IntRange(1, 1 << 20),
        default=256,
        show_default=True,
        metavar="MB",
        help="Largest size of a record; its oldest cycles are deleted.",
    ),
    click.option(
        "--record-age",
        type=SPAN,
        default="7d",
        show_default=True,
        metavar="T",
        help="Greatest age of a cycle in a record; older ones are deleted.",
    ),
)


def record_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, which are passed on as ``record``, None without a folder."""

    @wraps(command)
    def gathered(record: Path | None, record_size: int, record_age: float, **given: Any) -> Any:
        return command(record=None if record is None else RecordFlags(record, record_size, record_age), **given)

    found: Any = gathered
    for option in reversed(_OPTIONS):
        found = option(found)
    return found  # type: ignore[no-any-return]  # click's decorators are not typed so


def _warn(why: str) -> None:
    say(f"warning: {why}")


def recorder_of(flags: RecordFlags, failed: Callable[[str], object] = _warn) -> Recorder:
    """Return a recorder. ``failed``: called with why it ends early. Raises: InputError if the folder cannot be used."""
    from pumice.runtime.record.recorder import Bounds, Recorder

    try:
        return Recorder(flags.folder, Bounds(flags.megabytes << 20, flags.age_s), failed)
    except OSError as error:
        raise InputError(f"--record {flags.folder}: {error.strerror}") from None


@contextmanager
def recording(flags: RecordFlags, text: str, policy: Policy) -> Iterator[Recorder]:
    """Yield a recorder of a run under one policy. ``text``: of its file."""
    from pumice.runtime.policy.conf import shown_text

    recorder = recorder_of(flags)
    recorder.use_conf(shown_text(text), lenient=bool(policy.warnings))
    try:
        yield recorder
    finally:
        recorder.close()


def record_live(live: Live, flags: RecordFlags, stack: AsyncExitStack) -> None:
    """Record what a scheduler that runs is given, until the stack ends. Raises: InputError."""
    import asyncio
    import logging

    recorder = live.loop.recorder = recorder_of(flags, logging.getLogger("pumice.run").error)
    stack.callback(recorder.close)

    async def flush() -> None:
        # Without it, cycles of an hour ago would be lost with a process that has had nothing to do since.
        while True:
            await asyncio.sleep(_FLUSH_S)
            await live.look(lambda store, conf: recorder.flush())

    flushing = asyncio.create_task(flush())
    stack.callback(flushing.cancel)


def recorded_policy(plugins_dir: str) -> PolicyOf:
    """Return a function that makes a policy of the text in a record."""
    from pumice.cli.policies import saved_policy

    def policy_of(text: str, lenient: bool) -> Policy:
        return saved_policy(text, "the record: policy", strict=not lenient, plugins_dir=plugins_dir).policy

    return policy_of
