"""Texts of a task's agents cannot control the dashboard: they are shown, and never obeyed."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from tui.driver import WIDE, dashboard
from tui.societies import begins, needs_sandbox, runs, to_pane, to_tasks
from watchroom import Workspace

EVIL = "\x1b[31mRED\x1b]0;OWNED\x07 [@click=app.quit]press me[/] [/foo] \u202eback"
SHOWN = "␛[31mRED␛]0;OWNED␇ [@click=app.quit]press me[/] [/foo] ‹RO+202E›back"


async def test_hostile_words_names_and_output_are_made_visible(workspace: Workspace, tmp_path: Path) -> None:
    needs_sandbox(workspace)
    folder = tmp_path / "hostile"
    begins(workspace, folder, f"{EVIL}\nmore")
    root = workspace.tools("root")
    ok(root, "spawn_agent", role=f"r{EVIL}"[:100], instructions=EVIL, name="mallory")
    ok(root, "send_message", to="user", payload={"text": f"{EVIL}\n{EVIL}"})
    ok(root, "write_file", path="[@click=app.quit]x[.md", content=EVIL)
    (folder / "\x1b[31mred[").write_text(EVIL)
    runs(workspace, "root", f"printf '{EVIL}'; printf '{EVIL}' >&2; exit 1")
    ok(root, "terminate_agent", agent_id="mallory", reason=EVIL)
    async with dashboard(workspace, size=WIDE) as user:
        await to_tasks(user, "␛[31mRED")
        for pane in ("tasks", "members", "files", "messages", "commands", "output"):
            await user.until(lambda pane=pane: "␛[31m" in user.words_in(f"#{pane}"), f"it in {pane}")  # type: ignore[misc]
        await user.sees("[@click=app.quit]x[.md")
        raw = "\n".join(user.lines())
        assert not set(raw) & {"\x1b", "\x07", "\u202e", "\u009b"}
        for pane in ("members", "files", "messages", "commands"):
            await to_pane(user, pane)
            await user.press("G", "g")
        await to_pane(user, "messages")
        await user.press("enter")
        await user.sees(SHOWN)
        await user.press("escape")
        await to_pane(user, "tasks")
        await user.press("X")
        await user.is_asked("Cancel '␛[31mRED")
        await user.press("escape")
