"""Steps of a person on the boards screen."""

from __future__ import annotations

from tui.driver import User


async def to_boards(user: User, words: str = "Global board") -> None:
    """Go to the boards, and wait until the global one is shown with these words."""
    await user.goes_to("6", "boards")
    await user.sees(words)


async def opens_editor(user: User) -> None:
    await user.press("e")
    await user.until(lambda: user.place == "board_writing", "the editor")
