"""Comparison with ``git merge-file``: the same clean merges, and the same conflicts.

Texts that differ in style are given to git in normal form.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from effort import rounds
from merge.triples import Triple, triple
from watchroom.algorithms.merge import Region, merge, merge_styles

TRIPLES: Final = rounds(1000, 3000)
AT_ONCE: Final = 250

MARK: Final = 40
"""Length of the markers of git here, longer than any line."""

Part: TypeAlias = str | tuple[str, str, str]
"""Merged text, or the current, base and incoming text of a conflict."""


def parts_of(regions: tuple[Region, ...]) -> list[Part]:
    parts: list[Part] = []
    for region in regions:
        if region.kind == "conflict":
            parts.append(("".join(region.current), "".join(region.base), "".join(region.incoming)))
        elif parts and isinstance(parts[-1], str):
            parts[-1] += "".join(region.result)
        else:
            parts.append("".join(region.result))
    return [part for part in parts if part]


def by_git(texts: Triple, folder: Path) -> list[Part]:
    folder.mkdir()
    for name, text in texts._asdict().items():
        (folder / name).write_bytes(text.encode())
    command = ["git", "merge-file", "-p", "--diff3", f"--marker-size={MARK}", "current", "base", "incoming"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert 0 <= done.returncode < 128, done.stderr
    parts: list[Part] = []
    sides = [""]
    for line in done.stdout.decode().split("\n"):
        for mark in "<|=>":
            if line.startswith(mark * MARK):
                break
        else:
            sides[-1] += line + "\n"
            continue
        if mark == "<":
            parts.append(sides[0])
            sides = [""]
        elif mark == ">":
            parts.append((sides[0], sides[1], sides[2]))
            sides = [""]
        else:
            sides.append("")
    parts.append(sides[0].removesuffix("\n"))
    return [part for part in parts if part]


def comparable(parts: list[Part]) -> list[Part]:
    """Remove the line ends that git adds to a side without a final newline."""
    plain: list[Part] = []
    for part in parts:
        if isinstance(part, str):
            plain.append(part)
            continue
        sides = tuple(side.removesuffix("\n").rstrip("\r") for side in part)
        plain.append((sides[0], sides[1], sides[2]))
    return plain


@pytest.mark.parametrize("first", range(0, TRIPLES, AT_ONCE))
def test_merges_are_clean_and_in_conflict_where_gits_are(first: int, tmp_path: Path) -> None:
    def differs(seed: int) -> str:
        texts = triple(seed)
        normal = Triple(*map(merge_styles(*texts).normalize, texts))
        ours, gits = merge(*texts), by_git(normal, tmp_path / str(seed))
        if comparable(parts_of(ours)) == comparable(gits):
            return ""
        return f"seed {seed}: {texts}\nours {parts_of(ours)}\ngit  {gits}"

    with ThreadPoolExecutor(4) as pool:
        wrong = [each for each in pool.map(differs, range(first, first + AT_ONCE)) if each]
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:3])
