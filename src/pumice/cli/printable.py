"""A console that writes text as text: whatever a name holds, no character of it moves a cursor."""

from __future__ import annotations

from typing import IO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult

from pumice.runtime.printing import escaped_lines


def printable_console(stream: IO[str], width: int | None) -> Console:
    """``width`` None: that of the terminal."""
    made = Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)
    made.push_render_hook(_Printable())
    return made


class _Printable(RenderHook):
    """All text that is about to be written passes here. Styles are no text, they come after."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(each) for each in renderables]


class _Escaped:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else segment._replace(text=escaped_lines(segment.text))
