"""The ways of a person through the boards screen."""

from __future__ import annotations

from tui.driving import Desk


async def to_boards(desk: Desk, words: str = "Global board") -> None:
    """Go to the boards, and wait until the global one is shown, in which these words stand."""
    await desk.goes_to("6", "boards")
    await desk.sees(words)


async def opens_editor(desk: Desk) -> None:
    await desk.press("e")
    await desk.until(lambda: desk.place == "board_writing", "the editor")
