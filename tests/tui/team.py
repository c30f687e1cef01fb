"""The team that the dashboard shows: what its agents do, and the way to the versions of its plan."""

from __future__ import annotations

from calls import ok, refused
from tui.driving import Desk
from watchroom import Toolbox

PLAN = "plan.md"


def write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> None:
    ok(toolbox, "collab_write", filepath=path, content=text, message=text.strip(), expected_version=expected)


def stale_write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> int:
    arguments = {"filepath": path, "content": text, "message": text.strip(), "expected_version": expected}
    return int(refused(toolbox, "collab_write", **arguments)["conflict_id"])


def deliver(sender: Toolbox, receiver: str, name: str, content: str = "data") -> None:
    ok(sender, "handoff_file", to_agent=receiver, filename=name, content=content, message=f"about {name}")


async def choose_version(desk: Desk, version: int) -> None:
    """Put the cursor on a version of plan.md."""
    await desk.goes_to("4", "files")
    await desk.until(lambda: len(desk.list("shared").items) == 3, "the files")
    await desk.press("down")
    await desk.until(lambda: [row.path for row in desk.list("versions").items][:1] == [PLAN], "its versions")
    await desk.press("tab", "G")
    await desk.until(lambda: desk.cursor("versions").version == 1, "version 1")
    for _ in range(version - 1):
        await desk.press("up")
    await desk.until(lambda: desk.cursor("versions").version == version, f"version {version}")
