"""The page on settings: its example is a valid file, and it names every setting and screen."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path

from watchroom_tui.keys.actions import SCREENS
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.services.settings import Settings, read_settings

PAGE = (Path(__file__).parents[2] / "docs/settings.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, flags=re.MULTILINE))


def test_the_example_can_be_read_and_sets_everything(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    settings = read_settings(path, load_texts("en"))
    assert all(asdict(settings).values())
    assert settings.keymap == {"approve": ("f5",), "seen": ("S", "f6")}


def test_the_page_names_every_setting_and_screen() -> None:
    assert set(ROWS) == {each.name for each in fields(Settings)}
    assert re.findall(r"`(\w+)`", ROWS["screen"]) == [name for _, name in SCREENS]
