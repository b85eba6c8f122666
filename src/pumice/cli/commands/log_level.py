"""``pumice log-level``: change the log level of a running scheduler for a time."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pumice.cli.errors import InputError
from pumice.cli.extras import require
from pumice.cli.params import SPAN


@click.command()
@click.argument("level", type=click.IntRange(1, 10), required=False)
@click.option(
    "--for",
    "span",
    type=SPAN,
    default="10m",
    show_default=True,
    help="Restore the level after this time; at most one day.",
)
@click.option(
    "--socket-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: os.environ.get("DEBUG_SOCKET_DIR", "/tmp/klog-socks"),
    help="DEBUG_SOCKET_DIR of the scheduler.  [default: DEBUG_SOCKET_DIR, else /tmp/klog-socks]",
)
def log_level(level: int | None, span: float, socket_dir: Path) -> None:
    """Set the log LEVEL of a scheduler on this machine for a time. Without LEVEL, print the current one.

    The scheduler listens if it was started with DEBUG_SOCKET_DIR, as in the manifests of deploy/.

    \b
    Examples:
      pumice log-level 4 --for 5m
      kubectl -n volcano-system exec deploy/pumice -- pumice log-level 4
    """
    import asyncio

    require("log-level", "run")
    click.echo(asyncio.run(_asked(socket_dir, level, span)))


async def _asked(folder: Path, level: int | None, seconds: float) -> str:
    """Raises: InputError."""
    import aiohttp

    from pumice.kube.api.errors import clean
    from pumice.kube.scheduler.level_socket import NAME

    path = folder / NAME
    query = f"/setlevel?level={level}&duration={seconds:g}s" if level is not None else "/getlevel"
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), timeout=timeout) as session,
            session.get(f"http://localhost{query}") as answer,
        ):
            text = clean((await answer.content.read(200)).decode(errors="replace").strip())
    except (aiohttp.ClientError, TimeoutError, OSError):
        raise InputError(f"{path}: no scheduler listens here: was it started with DEBUG_SOCKET_DIR?") from None
    if answer.status != 200:
        raise InputError(f"{path}: {text}")
    return text
