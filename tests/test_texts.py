"""The texts in both languages: brackets and quotation marks are paired, and every text of a tool is used."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from watchroom.algorithms.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS
from watchroom.errors import GitError, InvalidScenario, NoService, ToolNotFound
from watchroom.features.buffers.tools import buffer_tool
from watchroom.features.calls.tool_registry import all_tools
from watchroom.kernel.zones import ZONES
from watchroom.texts import Catalogue, Language, catalogue

ROOT = Path(__file__).parents[1]
CATALOGUES = sorted(
    path for place in ("core", "tui", "whiteboards") for path in ROOT.glob(f"{place}/**/texts/*.toml")
)
PAIRS = {pair[0]: pair[1] for pair in ("()", "（）", "{}", "[]", "【】", "「」", "『』", "《》", "“”")}
KEYS = {"session.earlier"}
"""Texts that name a bracket as the key to press."""


def texts(table: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from texts(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", str(value)


def is_balanced(text: str) -> bool:
    wanted: list[str] = []
    for character in text:
        if character in PAIRS:
            wanted.append(PAIRS[character])
        elif character in PAIRS.values() and (not wanted or wanted.pop() != character):
            return False
    return not wanted and text.count('"') % 2 == 0 and text.count("`") % 2 == 0


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: str(path.relative_to(ROOT)))
def test_brackets_and_quotation_marks_have_both_halves(path: Path) -> None:
    found = dict(texts(tomllib.loads(path.read_text(encoding="utf-8"))))
    assert {name: text for name, text in found.items() if not is_balanced(text)}.keys() <= KEYS


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: str(path.relative_to(ROOT)))
def test_read_table_by_table_a_catalogue_says_what_its_file_does(path: Path) -> None:
    toml = path.read_text(encoding="utf-8")
    whole = {key: text.strip("\n") for key, text in texts(tomllib.loads(toml))}
    catalogue = Catalogue(toml)
    assert {key: catalogue(key) for key in whole} == whole
    assert Catalogue(toml).keys() == whole.keys()
    first = next(iter(whole))
    assert first in Catalogue(toml)
    assert f"{first}.more" not in catalogue
    with pytest.raises(KeyError):
        catalogue("nothing.of.this.name")


def test_a_tool_that_is_not_found_is_told_whole_in_chinese() -> None:
    message = ToolNotFound(tool="get_time").message("zh")
    assert "Tool not found: get_time" in message
    assert is_balanced(message)


def test_a_message_that_ends_with_a_value_is_a_sentence() -> None:
    assert GitError(reason="fatal: bad object").message() == "git failed: fatal: bad object."
    assert GitError(reason="It is locked.").message() == "git failed: It is locked."
    assert GitError(reason="fatal: bad object").message("zh").endswith("fatal: bad object。")
    assert InvalidScenario(file="a.toml", problems="line 1: unknown key").message().endswith("unknown key")


def test_each_text_of_a_tool_or_an_argument_belongs_to_one() -> None:
    tools = [*all_tools().values(), *(buffer_tool("alice", "b", kind) for kind in (*EDIT_TOOLS, *SYNC_TOOLS))]
    used: set[str] = set()
    for each in tools:
        fields = each.params.model_json_schema()["properties"]
        used |= {f"{each.text_key}.{part}" for part in ("title", "description", *fields)}
        used |= {f"argument.{field}" for field in fields}
    for place in ("core/watchroom", "whiteboards/watchroom_whiteboards"):
        found = texts(tomllib.loads((ROOT / place / "texts/en.toml").read_text("utf-8")))
        left = [key for key, _ in found if key.startswith(("tool.", "argument.")) and key not in used]
        assert left == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_zone_has_a_name(language: Language) -> None:
    known = catalogue(language, "watchroom_tui.texts")
    assert [zone for zone in ZONES if f"zone.{zone}" not in known] == []


def test_a_report_separates_what_happened_from_what_to_do() -> None:
    """A reason that ends a message may be a sentence or not."""
    for reason in ("permission denied", "Permission denied."):
        assert (
            NoService(reason=reason)
            .report()
            .startswith(f"The service cannot be used: {reason.rstrip('.')}. A")
        )
    assert "：断开。 " in NoService(reason="断开").report("zh")
    assert "- a: b\n" in InvalidScenario(file="f", problems="- a: b").report()
