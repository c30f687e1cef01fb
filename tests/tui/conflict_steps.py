"""Steps from a merge to its commit."""

from __future__ import annotations

from pathlib import Path

from tui.driver import User
from tui.team import PLAN, stale_write, write
from watchroom import Toolbox

DECIDED = "# The plan\n\nfirst, said alice\n\nmiddle\n\nlast, said bob\n"


def on_disk(root: Path, path: str = PLAN) -> str:
    return (root / "collaborative/current" / path).read_text(encoding="utf-8")


async def is_asked_for_a_message(user: User) -> None:
    await user.until(lambda: user.place == "CommitDialog", "the commit")
    await user.settle()


async def commits(user: User, *keys: str) -> None:
    """Decide with ``keys``, then commit with the proposed message."""
    await user.press(*keys, "w")
    await is_asked_for_a_message(user)
    await user.press("enter")


def stale_write_of_one_line(winner: Toolbox, loser: Toolbox) -> int:
    write(winner, "one\n", 0)
    write(winner, "two\n", 1)
    return stale_write(loser, "late\n", 1)
