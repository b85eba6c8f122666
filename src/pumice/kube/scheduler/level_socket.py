"""Set the log level of a running scheduler over a socket in the file system. Access to its folder is required.

Source: Volcano's ``/tmp/klog-socks/klog-klog.sock``, with its two requests.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiohttp import web

from pumice.kube.scheduler.logs import level_of, verbosity_of
from pumice.model.quantity import DurationError, parse_duration

NAME = "klog-klog.sock"
_LEVEL_MAX, _SPAN_MAX_S = 10, 86_400.0
_log = logging.getLogger("pumice.run")


class Levels:
    """Log levels that are set for a time and then return to the initial one. On one event loop."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._first = logger.level
        self._back: asyncio.TimerHandle | None = None

    @property
    def verbosity(self) -> int:
        """The verbosity as with ``-v``."""
        return verbosity_of(self._logger.level)

    def set(self, verbosity: int, seconds: float) -> None:
        if self._back is not None:
            self._back.cancel()
        self._logger.setLevel(level_of(verbosity))
        self._back = asyncio.get_running_loop().call_later(seconds, self.reset)
        _log.info("log level %d for %.0f s", verbosity, seconds)

    def reset(self) -> None:
        """Return to the initial level."""
        if self._back is not None:
            self._back.cancel()
            self._back = None
            self._logger.setLevel(self._first)
            _log.info("log level %d again", self.verbosity)

    # -- requests ------------------------------------------------------------------------------------------------------

    async def show(self, request: web.Request) -> web.Response:
        return web.Response(text=f"{self.verbosity}\n")

    async def change(self, request: web.Request) -> web.Response:
        """Handle ``?level=4&duration=10m``."""
        level, span = request.query.get("level", ""), request.query.get("duration", "")
        seconds = 0.0
        with suppress(DurationError):
            seconds = parse_duration(span)
        if not level.isdecimal() or not 0 < int(level[:3]) <= _LEVEL_MAX or not 0 < seconds <= _SPAN_MAX_S:
            return web.Response(text="wanted ?level=1…10&duration=10m, a day at most\n", status=400)
        self.set(int(level), seconds)
        return web.Response(text=f"{self.verbosity}\n")


@asynccontextmanager
async def level_socket(folder: Path) -> AsyncIterator[Path]:
    """Listen below a private folder, which is created if necessary. Raises: OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise PermissionError(f"{folder} is not ours alone")
    path, levels = folder / NAME, Levels(logging.getLogger("pumice"))
    app = web.Application(client_max_size=1 << 10)
    app.add_routes([web.get("/getlevel", levels.show), web.get("/setlevel", levels.change)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        path.unlink(missing_ok=True)  # of a process that was killed
        await web.UnixSite(runner, str(path)).start()
        yield path
    finally:
        levels.reset()
        await runner.cleanup()
        path.unlink(missing_ok=True)
