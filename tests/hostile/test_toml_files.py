"""Files of TOML that Python's parser gives up on, or takes quadratic time for: each is refused, with its rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from watchroom.agents.simulation import load
from watchroom.errors import ConfigInvalid, InvalidScenario
from watchroom.features.config.rows import parse_config
from watchroom.texts import catalogue
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.settings import read_settings

HOSTILE: Final = {
    "a number of 5,000 digits": (f"max_task_files = {'9' * 5000}", "4300 digits"),
    "arrays 5,000 deep": (f"agents = {'[' * 5000}", "nested too deeply"),
    "tables 5,000 deep": (f"agents = {'{a=' * 5000}", "nested too deeply"),
    "a key of 50,000 parts": (f"{'a.' * 50_000}a = 1", "more than 64 parts"),
    "a table of 50,000 parts": ("[" + '"a" . ' * 50_000 + "a]", "more than 64 parts"),
}


def _read_config(path: Path) -> object:
    return parse_config(path.read_text(encoding="utf-8"))


def _read_settings(path: Path) -> object:
    return read_settings(path, catalogue("en", "watchroom_tui.texts"))


@pytest.mark.parametrize(
    ("read", "refusal"),
    [(_read_config, ConfigInvalid), (load, InvalidScenario), (_read_settings, WrongUsage)],
    ids=["config", "scenario", "settings"],
)
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_the_parser_cannot_take_is_refused(
    tmp_path: Path, kind: str, read: Callable[[Path], object], refusal: type[Exception]
) -> None:
    text, rule = HOSTILE[kind]
    path = tmp_path / "hostile.toml"
    path.write_text(text[: 60 * 1024], encoding="utf-8")
    with pytest.raises(refusal, match=rule):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        "[alerts]\nkinds = [[]]",
        "[alerts]\nkinds = [{}]",
        "[alerts]\nlink = 0",
        "[alerts.targets.x]\ntype = 'ntfy'\nurl = 'https://a.b'\ntoken = []",
        f"[budgets.team]\ncost = {'9' * 400}",
        "[budgets.team]\ncost = nan",
    ],
)
def test_a_value_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"alerts\.|budgets\."):
        parse_config(text)


def test_a_refusal_does_not_repeat_all_of_a_long_entry() -> None:
    with pytest.raises(ConfigInvalid, match=r"budgets\.xxx") as caught:
        parse_config(f"[budgets.{'x' * 20_000}]")
    assert len(caught.value.message()) < 1200


def test_a_key_of_64_parts_is_read() -> None:
    with pytest.raises(ConfigInvalid, match=r"agents\.a"):
        parse_config(f"agents.{'a.' * 62}a = 1")


def test_a_team_in_which_each_is_beneath_the_one_before_is_read_in_one_pass() -> None:
    agents = [f"[agents.a{number}]\nsupervisor = 'a{number - 1}'\n" for number in range(1, 3000)]
    whole = f"[agents.a0]\n{''.join(agents)}"
    assert len(parse_config(whole).agents) == 3000
    with pytest.raises(ConfigInvalid, match="a0 → a2 → a1 → a0"):
        parse_config("[agents.a0]\nsupervisor = 'a2'\n" + "".join(reversed(agents[:2])))
