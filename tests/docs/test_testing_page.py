"""docs/testing.md: the tests that it names for a shortcut exist, and belong to the real tier."""

from __future__ import annotations

import re
from pathlib import Path

from tiers import IN_BOTH, REAL

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/testing.md").read_text("utf-8")
SHORTCUTS = PAGE.split("## Shortcuts of the fast tier\n")[1].split("\n## ")[0]


def test_each_shortcut_names_real_tests() -> None:
    rows = [line.split("|") for line in SHORTCUTS.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    in_both = {each.removesuffix(".py") for each in IN_BOTH}
    for _, shortcut, _, _, covering, _ in rows:
        named = re.findall(r"`([a-z_]+(?:/\w+)?)`", covering)
        known = [each for each in named if each.startswith(f"{REAL}/") or each in in_both]
        assert known or "whole real tier" in covering or "IN_BOTH" in covering, shortcut
        for each in known:
            assert (ROOT / f"tests/{each}.py").exists() or (ROOT / f"tests/{each}").is_dir(), each


def test_every_test_of_both_tiers_exists() -> None:
    assert [each for each in IN_BOTH if not (ROOT / "tests" / each).exists()] == []
