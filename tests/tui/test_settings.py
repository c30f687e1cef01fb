"""The settings file: remembered values, settings, and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from cli.running import as_typed
from pty_driver import Terminal
from watchroom import Workspace
from watchroom_tui.app import WatchroomApp
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.theme import DARK, LIGHT
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.settings import (
    Settings,
    WorkspaceMemory,
    read_memory,
    read_settings,
    remember,
    settings_path,
    write_memory,
)

TEXTS = load_texts("en")
PATIENCE = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.toml"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_there_are_defaults(path: Path) -> None:
    assert read_settings(path, TEXTS) == Settings()


def test_what_is_remembered_is_read_again_and_comments_stay(path: Path) -> None:
    write(path, '# mine\ntheme = "dark"  # for the evening\n\n[keys]\napprove = "A"  # far from s\n')
    remember(path, theme="light", alerts="off")
    text = path.read_text(encoding="utf-8")
    assert "# mine" in text
    assert "# far from s" in text
    settings = read_settings(path, TEXTS) if "whole_file" in text else None
    assert settings is None
    write(path, text.replace('approve = "A"', 'approve = "f2"'))
    settings = read_settings(path, TEXTS)
    assert (settings.theme, settings.alerts) == ("light", "off")
    assert settings.keymap == {"approve": ("f2",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('theme = "dark"\ncolour = "red"\n', "line 2: Unknown setting: colour."),
        ('theme = "pink"\n', "line 1: theme must be one of: dark, light."),
        ('"\\u001b[31m" = "x"\n', "Unknown setting: ␛[31m."),
        ('[machines]\n"\\u001b[31m" = "x"\n', "line 1: ␛[31m: a machine's name"),
        ("[keys]\napprove = 7\n", "line 2: approve must be a string."),
        ("keys = 7\n", "line 1: keys must be a string."),
        ('[keys]\napprove = "f2"\naproove = "x"\n', "line 3: Unknown action: aproove."),
        ('[keys]\nreject = "hyper+x"\n', "line 2: hyper+x is not a key."),
        ("[keys]\nreject = []\n", "line 2: [] is not a key."),
        (
            '[keys]\n\napprove = ["f2", "m"]\n',
            "line 3: m is already the key of message, so approve cannot use it.",
        ),
        ('[publish]\ngit = "~/seals"\npush = "yes"\n', "line 3: Unknown setting: publish.push."),
        ("publish = 7\n", "line 1: publish must be a string."),
        ('[publish]\nfolder = "~\\u0000/seals"\n', "line 2: folder must not contain a NUL character."),
        ('screen = "kitchen"\n', "line 1: "),
        ("theme = \n", "(at line 1"),
        ("x = " + "[" * 30_000, "settings.toml"),
        ("x = '" + "x" * 70_000 + "'\n", "exceeds 65536 bytes"),
    ],
)
def test_a_mistake_names_the_file_and_the_line(path: Path, text: str, said: str) -> None:
    with pytest.raises(WrongUsage, match=r"settings\.toml") as refused:
        read_settings(write(path, text), TEXTS)
    assert said in str(refused.value)


def test_keys_can_be_exchanged(path: Path) -> None:
    settings = read_settings(write(path, '[keys]\napprove = "r"\nreject = "a"\n'), TEXTS)
    assert settings.keymap == {"approve": ("r",), "reject": ("a",)}


async def test_a_remapped_key_acts_and_is_shown_and_the_old_one_does_not(workspace: Workspace) -> None:
    settings = Settings(theme="light", keys={"screen_files": ["f4", "%"], "theme": "f7"})
    app = WatchroomApp(workspace.journal, place="team/", settings=settings, filters={"files.shared": "zebra"})
    async with app.run_test(size=(120, 40)) as pilot:
        assert app.theme == LIGHT
        await pilot.press("f7")
        assert app.theme == DARK
        await pilot.press("4")
        assert app.current_mode == "overview"
        await pilot.press("%")
        assert app.current_mode == "files"
        assert app.memory().screen == "files"
        assert app.changed_settings() == {"theme": "dark"}
    assert app.memory().filters == {"files.shared": "zebra"}


@pytest.mark.slow(5)
def test_each_workspace_has_its_own_screen_and_filters_and_a_language_is_for_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    roots = [tmp_path / name for name in ("one", "two")]
    for root in roots:
        with Workspace.open(root, agents=["alice"]) as workspace:
            for path in ("plan.md", "zebra.md"):
                ok(workspace.tools("alice"), "collab_write", filepath=path, content="x", message="m")
    first, second = ([*as_typed("open", str(root))] for root in roots)
    with Terminal([*first, "--language", "zh"]) as terminal:
        terminal.wait_for_text("zebra.md", timeout=PATIENCE)
        terminal.send("4")
        # The overview has a version, too.
        terminal.wait_for_text("共享文件", timeout=PATIENCE)
        terminal.send("/zeb\r")
        terminal.wait_for(lambda lines: not any("plan.md" in line for line in lines), timeout=PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
    assert not settings_path().exists()
    with Terminal(second) as terminal:
        terminal.wait_for_text("Needs you", timeout=PATIENCE)
        terminal.send("4")
        terminal.wait_for_text("plan.md", timeout=PATIENCE)
        terminal.send("1q")
        assert terminal.wait(PATIENCE) == 0
    with Terminal(first) as terminal:
        terminal.wait_for_text("/zeb", timeout=PATIENCE)
        terminal.wait_for_text("Shared files", timeout=PATIENCE)
        assert not any("plan.md" in line for line in terminal.screen())
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0


def test_a_damaged_memory_of_a_workspace_holds_nothing(path: Path) -> None:
    for text in ("no toml\n", 'screen = 7\nfilters = "x"\n', "x = '" + "x" * 70_000 + "'\n"):
        assert read_memory(write(path, text)) == WorkspaceMemory()
    memory = WorkspaceMemory("files", {"files.shared": "plan"})
    write_memory(path, memory)
    assert read_memory(path) == memory


def test_what_could_not_be_read_again_is_not_written(path: Path) -> None:
    write(path, 'theme = "dark"\n')
    with pytest.raises(ValueError, match="65536"):
        remember(path, theme="x" * 70_000)
    assert path.read_text(encoding="utf-8") == 'theme = "dark"\n'
    write(path, "no toml\n")
    with pytest.raises(ValueError, match="line 1"):
        remember(path, theme="light")
    assert path.read_text(encoding="utf-8") == "no toml\n"
