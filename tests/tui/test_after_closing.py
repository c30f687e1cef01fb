"""A closed dashboard leaves nothing behind."""

from __future__ import annotations

import os
import tempfile

from calls import ok
from tui.driver import dashboard
from watchroom import Toolbox, Workspace


async def test_commits_after_the_dashboard_is_gone_disturb_no_other_file(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with dashboard(workspace):
        pass
    with tempfile.TemporaryDirectory() as folder:
        # These files get the descriptors that the dashboard used.
        paths = [os.path.join(folder, str(n)) for n in range(50)]
        numbers = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
        try:
            for n in range(20):
                ok(alice, "save_to_my_workspace", filename=f"{n}.md", content="x")
            assert [os.fstat(number).st_size for number in numbers] == [0] * len(numbers)
        finally:
            for number in numbers:
                os.close(number)


async def test_a_closed_dashboard_has_no_front_screen(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        screen = user.app.base_screen
        assert screen is not None
        assert screen.is_in_front
        await user.press("question_mark")
        await user.until(lambda: not screen.is_in_front, "the help")
        await user.press("escape")
        await user.until(lambda: screen.is_in_front, "the screen")
    with user.app._context():
        assert not screen.is_in_front
