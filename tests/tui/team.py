"""The team that the dashboard shows: actions of its agents, and steps to the versions of its plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from calls import ok, refused
from damage import journal_of
from tui.driver import User
from watchroom import Toolbox, Workspace
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.platform.process_lock import ProcessLock
from watchroom_tui.screens.merge.draft import MergeDraft
from watchroom_tui.screens.merge.screen import MergeScreen

PLAN = "plan.md"


def write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> None:
    ok(toolbox, "collab_write", filepath=path, content=text, message=text.strip(), expected_version=expected)


def stale_write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> int:
    arguments = {"filepath": path, "content": text, "message": text.strip(), "expected_version": expected}
    return int(refused(toolbox, "collab_write", **arguments)["conflict_id"])


def deliver(sender: Toolbox, receiver: str, name: str, content: str = "data") -> None:
    ok(sender, "handoff_file", to_agent=receiver, filename=name, content=content, message=f"about {name}")


async def choose_version(user: User, version: int) -> None:
    """Move the cursor to a version of plan.md."""
    await user.goes_to("4", "files")
    await user.until(lambda: len(user.list("shared").items) == 3, "the files")
    await user.press("down")
    await user.until(lambda: [row.path for row in user.list("versions").items][:1] == [PLAN], "its versions")
    await user.press("tab", "G")
    await user.until(lambda: user.cursor("versions").version == 1, "version 1")
    for _ in range(version - 1):
        await user.press("up")
    await user.until(lambda: user.cursor("versions").version == version, f"version {version}")


BASE = "# Plan\n\nfirst\n\nmiddle\n\nlast\n"
CURRENT = "# Plan\n\nfirst, said alice\n\nmiddle\n\nlast, said alice\n"
INCOMING = "# The plan\n\nfirst, said bob\n\nmiddle\n\nlast, said bob\n"


def collide(winner: Toolbox, loser: Toolbox, path: str = PLAN) -> int:
    """Make two writes based on the same version. Both change two lines, and the loser one more. Return the
    refused row."""
    write(winner, BASE, 0, path)
    ok(
        winner,
        "collab_write",
        filepath=path,
        content=CURRENT,
        message="alice's words",
        expected_version=1,
    )
    late = refused(
        loser, "collab_write", filepath=path, content=INCOMING, message="bob's words", expected_version=1
    )
    return int(late["conflict_id"])


async def opens_merge(user: User) -> MergeDraft:
    """Go to the most urgent conflict, and return its merge."""
    await user.press("exclamation_mark")
    return await has_opened_merge(user)


async def has_opened_merge(user: User) -> MergeDraft:
    """Wait for the texts of the merge, and return it."""
    await user.until(lambda: isinstance(user.app.screen, MergeScreen), "the merge screen")
    screen = user.app.screen
    assert isinstance(screen, MergeScreen)
    await user.until(lambda: screen.draft is not None, "its texts")
    await user.settle()
    assert screen.draft is not None
    return screen.draft


@contextmanager
def busy(workspace: Workspace) -> Iterator[None]:
    """Hold the journal's write lock within the context, as another process, so that an act has started but
    not ended."""
    if workspace.journal.is_shared:
        import psycopg

        with psycopg.connect(journal_of(workspace.root)) as connection:
            connection.execute("SELECT FROM watchroom.tip FOR UPDATE")
            yield
        return
    lock = ProcessLock(os.path.join(workspace.root, CONTROL, "journal.lock"), workspace.platform)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
        lock.close()
