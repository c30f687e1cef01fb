"""Screens of other packages open in the dashboard, and their errors stay on them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugins.installing import Installed
from pty_driver import PATIENCE, Terminal
from tui.driver import MIDDLE, dashboard, running
from tui.team import collide
from watchroom import Toolbox, Workspace
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp
from watchroom_tui.readers.plugin_screens import plugin_screens
from watchroom_tui.services.plugin_notices import bind_screens
from watchroom_tui.services.settings import Settings

HEAD = "from watchroom_tui.readers.plugin_screens import ScreenPlugin, ScreenTable\n"
GROUP = "watchroom.screens"


@pytest.fixture(autouse=True)
def _in_this_process(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process find the packages, and load them again for each test."""
    monkeypatch.syspath_prepend(str(installed.folder))
    for name in ("extra", "watchroom_refusals"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    plugin_screens.cache_clear()
    yield
    sys.modules.pop("extra", None)
    plugin_screens.cache_clear()


async def test_the_key_opens_the_example_which_follows_the_journal(
    installed: Installed, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    installed.add_example("screen")
    async with dashboard(workspace) as user:
        await user.until(lambda: "f6" in user.app._bindings.key_to_bindings, "the key")
        await user.press("f6")
        await user.until(lambda: user.place == "plugin", "the screen")
        await user.sees("Refusals", "Row  Time  Who  Tool  Path  Reason")
        collide(alice, bob)
        await user.sees("collab_write  plan.md  version_conflict")
        await user.press("f6")
        await user.until(lambda: user.place == "plugin", "the screen, once")
        await user.press("escape")
        await user.until(lambda: user.place == "overview", "the overview")


async def test_help_search_and_the_past_work_on_it(
    installed: Installed, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    installed.add_example("screen")
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await bind_screens(user.app)
        await user.press("f6")
        await user.sees("version_conflict")
        await user.press("question_mark")
        await user.until(lambda: user.place == "HelpDialog", "the help")
        await user.press("escape", "slash")
        await user.type("plan")
        await user.sees("1 found")
        await user.press("escape")
        await user.press("T", "comma")
        await user.sees_no("version_conflict")
        await user.press("q")


@pytest.mark.parametrize(("language", "title"), [("en", "Open Refusals"), ("zh", "打开被拒绝的操作")])
async def test_the_palette_opens_it_in_the_persons_language(
    installed: Installed, workspace: Workspace, language: Language, title: str
) -> None:
    installed.add_example("screen")
    async with dashboard(workspace, language=language) as user:
        await user.press("colon")
        await user.type(title)
        await user.sees(f"{title} (f6)")
        await user.press("down", "enter")
        await user.until(lambda: user.place == "plugin", "the screen")


async def test_a_key_of_the_person_stays_the_persons(installed: Installed, workspace: Workspace) -> None:
    installed.add_example("screen")
    settings = Settings(keys={"theme": "f6"})
    app = WatchroomApp(workspace.journal, place="team/", settings=settings, open_workspace=lambda: workspace)
    async with running(app, MIDDLE) as user:
        await bind_screens(app)
        theme = app.theme
        await user.press("f6")
        await user.until(lambda: app.theme != theme, "the other theme")
        assert user.place == "overview"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("def read(model, journal): raise OSError('no \\x1b[31m disk')", "The plug-in failed: OSError: no"),
        ("def read(model, journal): return 5", "The plug-in failed: TypeError"),
        (
            "def read(model, journal): raise SystemExit('no')",
            "The plug-in failed: RuntimeError: SystemExit('no')",
        ),
        (
            "def read(model, journal): return ScreenTable(('A', 'B'), [('1',)])",
            "The plug-in failed: ValueError",
        ),
        ("def read(model, journal): return ScreenTable(('A',), [['1\\x1b[2J']] * 1200)", "… +200"),
    ],
)
async def test_an_error_or_a_hostile_text_stays_on_the_screen(
    installed: Installed, workspace: Workspace, code: str, shown: str
) -> None:
    code = f"{HEAD}{code}\nSCREEN = ScreenPlugin({{'en': 'Mine'}}, read)\n"
    installed.add_module("extra", code, GROUP, {"mine": "extra:SCREEN"})
    async with dashboard(workspace, size=(120, 40)) as user:
        await user.until(lambda: plugin_screens().found, "the plug-in")
        await user.app.run_action("app.plugin_screen('mine')")
        await user.until(lambda: user.place == "plugin", "the screen")
        await user.sees("1␛[2J" if shown.startswith("…") else shown)
        await user.press("G")
        await user.sees(shown)
        assert "\x1b" not in "".join(user.lines())
        await user.goes_to("4", "files")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("SCREEN = 5", "int is no ScreenPlugin"),
        ("SCREEN = ScreenPlugin({'zh': '我'}, print)", "the English title is missing"),
        ("SCREEN = ScreenPlugin({'en': 'M' * 41}, print)", "the English title is missing"),
        (
            "SCREEN = ScreenPlugin({'en': 'M', 'zh': None}, print)",
            "the English title is missing, or a title is no",
        ),
        ("SCREEN = ScreenPlugin({'en': 'M'}, print, 'q')", "the key 'q' is none of f1 to f12"),
        ("SCREEN = ScreenPlugin({'en': 'M'}, print, 'f6')", "the key f6 belongs to watchroom-refusals"),
        ("raise SystemExit('no')", "SystemExit: no"),
    ],
)
async def test_a_broken_screen_is_left_out_and_the_dashboard_says_so(
    installed: Installed, workspace: Workspace, code: str, reason: str
) -> None:
    installed.add_example("screen")
    installed.add_module("extra", f"{HEAD}{code}", GROUP, {"second": "extra:SCREEN"})
    async with dashboard(workspace) as user:
        await user.is_told(f"The plug-in second of the package extra is left out ({GROUP}): {reason}")
        assert [*plugin_screens().found] == ["refusals"]


def test_a_plug_in_that_never_returns_does_not_hold_up_the_end(
    installed: Installed, workspace: Workspace, tmp_path: Path
) -> None:
    called = tmp_path / "called"
    read = f"def read(*_): Path({str(called)!r}).touch(); time.sleep(10_000)"
    code = f"import time\nfrom pathlib import Path\n{HEAD}{read}\nSCREEN = ScreenPlugin({{'en': 'Mine'}}, read, 'f6')\n"
    installed.add_module("extra", code, GROUP, {"mine": "extra:SCREEN"})
    with Terminal(installed.command("open", workspace.root), env=installed.variables) as terminal:
        terminal.wait_for_text("Needs you")
        end = time.monotonic() + PATIENCE
        while not called.exists():
            assert time.monotonic() < end
            # The key is bound soon after the start.
            terminal.send("\x1b[17~")
            time.sleep(0.1)
        terminal.send("q")
        assert terminal.wait() == 0
