"""A real browser for tests: headless Chromium, spoken to over its own protocol on loopback."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("PUMICE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
WITHOUT_CHROMIUM = "no Chromium on PATH: install it, or set PUMICE_CHROMIUM"
TIME_MAX_S = 60.0
_SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
# The page has read its data, and three frames have passed: the observers have drawn what is looked at.
_DRAWN = """new Promise((done) => {
  const frame = requestAnimationFrame, frames = () => frame(() => frame(() => frame(done)));
  const begin = () => (typeof READY === "undefined" ? frames() : READY.then(frames, frames));
  document.readyState === "complete" ? begin() : addEventListener("load", begin);
}).then(() => null)"""


class Page:
    """One tab. ``complaints``: what the console said; ``requests``: every address that was asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._session: str | None = None
        self._count = 0

    async def open(self, place: Path | str, width: int = 1280, height: int = 900, scheme: str = "light") -> Self:
        """Load a file or an address, and wait until it is drawn."""
        target = (await self.call("Target.createTarget", url="about:blank"))["targetId"]
        self._session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **screen)
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await self.call("Page.navigate", url=place.as_uri() if isinstance(place, Path) else place)
        await self.drawn()
        return self

    async def drawn(self) -> None:
        """Wait until the page has drawn what it was last asked for."""
        await self.js(_DRAWN)

    async def js(self, expression: str) -> Any:
        """The value of an expression, awaited, as JSON."""
        found = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def point(self, x: float, y: float) -> None:
        """Move the mouse."""
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse, move it in a few steps, let go."""
        button = {"button": "left", "buttons": 1, "clickCount": 1}
        await self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **button)
        for part in (0.25, 0.5, 0.75, 1.0):
            x, y = (a + part * (b - a) for a, b in zip(start, end, strict=True))
            await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **button)
        await self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **button)
        await self.drawn()

    async def write(self, text: str) -> None:
        """Type into what has the focus."""
        await self.call("Input.insertText", text=text)
        await self.drawn()

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One call of the protocol; what the page reports meanwhile is kept."""
        self._count += 1
        session = {} if self._session is None else {"sessionId": self._session}
        await self._socket.send_json({"id": self._count, "method": method, "params": params, **session})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == self._count:
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@asynccontextmanager
async def chromium(profile: Path) -> AsyncIterator[Page]:
    """A tab of a browser of its own, gone afterwards."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *_SWITCHES,
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIME_MAX_S):
            address = await _address(process)
            async with aiohttp.ClientSession() as http, http.ws_connect(address, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said = []
    async for line in process.stderr:
        said.append(line.decode(errors="replace"))
        if found := re.search(r"ws://127\.0\.0\.1\S+", said[-1]):
            return found[0]
    raise AssertionError(f"Chromium ended: {''.join(said)}")
