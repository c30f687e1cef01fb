"""Rendered boards in a real terminal: ``python benchmarks/boards.py``."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from board_app import CHANGED
from measure import Measure, keep_bytecode, percentile, scratch, table
from minimal_app import GREETING
from timed_terminal import Terminal

_HERE: Final = Path(__file__).parent
_MINIMAL: Final = [sys.executable, str(_HERE / "minimal_app.py")]
_BOARD: Final = [sys.executable, str(_HERE / "board_app.py")]
_TITLE: Final = "The board of the checkout team"
_WORDS: Final = (
    *("plan", "build", "test", "review", "deploy", "agent", "journal", "merge", "lease", "the", "a", "of"),
    *("and", "测试", "计划", "完成", "接口"),
)
_FIRST_PAINTS: Final = 21
_KEYS: Final = 60
_UPDATES: Final = 12


def sections(seed: int = 1) -> Iterator[str]:
    """Yield the sections of an endless board, with every kind of block in turn."""
    chance = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(chance.choice(_WORDS) for _ in range(count))

    yield f"# {_TITLE}\n\n{words(40)}\n\n"
    number = 0
    while True:
        number += 1
        yield f"## Section {number}\n\n{words(60)} **bold** and `code`, [a link](https://example.com/{number}).\n\n"
        yield (
            f"### 决策 #{number}\n- **时间**: 2026-11-21T10:00:00+08:00\n- **提议者**: agent-{number % 7}\n"
            f"- **内容**: {words(12)}\n- **状态**: 已批准\n\n"
        )
        tasks = "".join(f"- [{'x' if each % 2 else ' '}] {words(8)}\n" for each in range(12))
        yield f"### Tasks {number}\n{tasks}\n"
        code = "".join(f"def step_{each}(x):\n    return x + {each}  # not a heading\n" for each in range(8))
        yield f"### Code {number}\n```python\n{code}```\n\n"
        rows = "".join(f"| {words(2)} | {words(3)} | {each} |\n" for each in range(10))
        yield f"### Table {number}\n\n| a | b | c |\n|---|:-:|--:|\n{rows}\n---\n\n"
        log = "".join(
            f"- [2026-11-21T10:{each:02}:00Z] agent-{each % 5}: {words(10)}\n" for each in range(20)
        )
        yield f"### Log {number}\n{log}\n> {words(20)}\n\n"


def board(size: int) -> bytes:
    """Return a board of about ``size`` bytes."""
    parts, length = [], 0
    for part in sections():
        parts.append(part)
        length += len(part.encode())
        if length >= size:
            break
    return "".join(parts).encode()[:size].decode("utf-8", "ignore").encode()


def measure() -> list[Measure]:
    with scratch() as folder:
        keep_bytecode(folder)
        paths = {}
        for name, size in (("10 KB", 10_000), ("10 MB", 10_000_000)):
            paths[name] = os.path.join(folder, name.replace(" ", "-") + ".md")
            Path(paths[name]).write_bytes(board(size))
        return [
            *first_paint(paths),
            *keys(paths["10 MB"]),
            *updates(paths["10 MB"]),
            *memory(paths),
        ]


def first_paint(paths: dict[str, str]) -> list[Measure]:
    """Measure the time from the start of the program to its text on the screen."""
    cases = {
        "minimal app": (_MINIMAL, GREETING),
        "10 MB": ([*_BOARD, paths["10 MB"]], _TITLE),
        "10 KB": ([*_BOARD, paths["10 KB"]], _TITLE),
    }
    painted: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(_FIRST_PAINTS + 1):
        for name in sorted(cases, reverse=bool(turn % 2)):
            command, text = cases[name]
            with Terminal(command) as terminal:
                taken = terminal.wait_for_bytes(text.encode(), timeout=30) - terminal.started
            # The first round creates the bytecode.
            painted[name] += [taken] if turn else []
    return [
        Measure(
            f"first paint of 10 MB ÷ {name}",
            median(ours / other for ours, other in zip(painted["10 MB"], painted[name], strict=True)),
            "×",
            goal,
            remark=f"{median(painted['10 MB']) * 1e3:.0f} ms, {median(painted[name]) * 1e3:.0f} ms",
        )
        for name, goal in (("minimal app", 1.3), ("10 KB", 1.1))
    ]


def keys(path: str) -> list[Measure]:
    """Measure the latency of a scrolling key, beside the minimum latency of a key."""
    measures = []
    with Terminal(_MINIMAL) as minimal, Terminal([*_BOARD, path]) as terminal:
        minimal.wait_for_bytes(GREETING.encode(), timeout=30)
        terminal.wait_for_bytes(_TITLE.encode(), timeout=30)
        terminal.settle(1.0)
        for name, key in (("a line", "j"), ("a page", "\x1b[6~")):
            floor, ours = [], []
            for _ in range(_KEYS):
                floor.append(minimal.key_latency("x"))
                time.sleep(0.03)
                ours.append(terminal.key_latency(key))
                time.sleep(0.03)
            measures += [
                Measure(
                    f"a key that scrolls 10 MB by {name} ÷ key floor",
                    median(one / other for one, other in zip(ours, floor, strict=True)),
                    "×",
                    3,
                    remark=f"{median(ours) * 1e3:.1f} ms, {median(floor) * 1e3:.1f} ms",
                ),
                Measure(
                    f"scrolling by {name}, p95",
                    percentile(ours, 95) * 1e3,
                    "ms",
                    16,
                    remark=f"the floor's: {percentile(floor, 95) * 1e3:.1f} ms",
                ),
            ]
    return measures


def updates(path: str) -> list[Measure]:
    """Measure the time from the key that changes a visible section to the change on the screen."""
    with Terminal([*_BOARD, path]) as terminal:
        terminal.wait_for_bytes(_TITLE.encode(), timeout=30)
        terminal.settle(1.0)
        delays = []
        for number in range(1, _UPDATES + 1):
            since = terminal.mark()
            sent = terminal.send("u")
            delays.append(terminal.wait_for_bytes(b"%s%05d" % (CHANGED, number), since=since) - sent)
            terminal.settle(1.2)
    remark = f"p95 {percentile(delays, 95) * 1e3:.0f} ms; the text is compared and copied in it"
    return [Measure("an update of a section of 10 MB", median(delays) * 1e3, "ms", 50, remark=remark)]


def memory(paths: dict[str, str]) -> list[Measure]:
    """Measure the memory of a long board above that of a short one, completely parsed and after scrolling."""
    used = {}
    for name in ("10 KB", "10 MB"):
        with Terminal([*_BOARD, paths[name]]) as terminal:
            terminal.wait_for_bytes(_TITLE.encode(), timeout=30)
            terminal.settle(1.5)
            for _ in range(20):
                terminal.send("\x1b[6~")
                terminal.settle(0.1)
            used[name] = terminal.usage().rss
    sizes = {name: os.path.getsize(paths[name]) for name in used}
    added = (used["10 MB"] - used["10 KB"]) / (sizes["10 MB"] - sizes["10 KB"])
    remark = f"{used['10 MB'] / 1e6:.0f} MB, {used['10 KB'] / 1e6:.0f} MB with 10 KB"
    return [Measure("memory for each byte of the board", added, "bytes", 1.4, remark=remark)]


if __name__ == "__main__":
    print(table(measure()))
