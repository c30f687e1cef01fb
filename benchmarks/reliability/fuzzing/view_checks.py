"""Check everything that people see of a workspace: every view as text, and every screen of the dashboard."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Final

from watchroom import Workspace
from watchroom_cli.main import main
from watchroom_cli.output.stream import OutputStream
from watchroom_cli.watch.views import VIEWS
from watchroom_tui.app import WatchroomApp
from watchroom_tui.keys.actions import SCREENS

from reliability.fuzzing.oracle import check_line

_SIZE: Final = (120, 40)
_PATIENCE: Final = 120.0
_PAGES: Final = 3


def check_shown(workspace: Workspace) -> Iterator[str]:
    """Yield the problems in the views of ``workspace``: failures, and lines with control characters."""
    root = str(workspace.root)
    commands = [["show", root, view] for view in VIEWS]
    commands += [["log", root, "--limit", "2000", "--steps"], ["usage", root], ["search", root, "x"]]
    for command in commands:
        printed = io.StringIO()
        try:
            with redirect_stdout(OutputStream(printed, is_terminal=True)):
                status = main(command)
            if status:
                yield f"{command[0]} ends with {status}"
            _check(printed.getvalue().splitlines())
        except Exception as error:  # noqa: BLE001  # a view that cannot be shown is what is looked for
            yield f"{' '.join([command[0], *command[2:]])}: {type(error).__name__}: {error}"
    try:
        asyncio.run(_check_screens(workspace))
    except Exception as error:  # noqa: BLE001  # as above
        yield f"the dashboard: {type(error).__name__}: {error}"


def _check(lines: Sequence[str]) -> None:
    for line in lines:
        # Tabs separate columns.
        check_line(line.replace("\t", " "))


async def _check_screens(workspace: Workspace) -> None:
    app = WatchroomApp(workspace.journal, place="team/", person="dana", open_workspace=lambda: workspace)
    last = workspace.journal.last_seq()
    async with asyncio.timeout(_PATIENCE), app.run_test(size=_SIZE) as pilot:
        while app.model.seq < last:
            await pilot.pause(0.05)
        for key, _ in SCREENS:
            await pilot.press(key)
            for page in range(_PAGES):
                await pilot.press(*(("pagedown",) if page else ()))
                screen = app.screen
                _check([strip.text for strip in screen._compositor.render_strips(screen.size)])


def problems(workspace: Workspace) -> list[str]:
    """Return the problems after all inputs: disagreements of journal and files, rows that no server could
    store, and problems in the views."""
    workspace.flush()
    found = [f"verify: {problem}" for problem in workspace.verify()]
    return [*found, *_find_nul(workspace), *check_shown(workspace)]


def _find_nul(workspace: Workspace) -> Iterator[str]:
    after = 0
    while rows := workspace.journal.rows(after):
        for row in rows:
            if any("\0" in field for field in row if isinstance(field, str)) or "\0" in str(row.detail):
                yield f"row {row.seq} holds NUL"
        after = rows[-1].seq
