"""The dashboard in a real terminal: ``python benchmarks/dashboard.py``.

Every moment is taken from the bytes that arrive at the terminal's end of the pty.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from big_workspace import build
from load import marker, save
from measure import Measure, keep_bytecode, percentile, scratch, table
from minimal_app import GREETING
from timed_terminal import NotSeen, Terminal, Usage
from watchroom import Workspace

_HERE = Path(__file__).parent
_MINIMAL = [sys.executable, str(_HERE / "minimal_app.py")]
_WATCHROOM = [sys.executable, "-c", "import sys; from watchroom_tui.cli import main; sys.exit(main())"]
_LAST = "the-last-row"
_MARKER = re.compile(rb"m\d{7}z")
_SINGLE = 9_000_000
"""Markers of single commits begin here, those of the load at 0."""

_KEYS = (("8", b"outcome"), ("1", b"Needs you"))
"""To the activity screen and back, and what only the screen that opens writes."""
_PRESSES = 40


def open_command(root: str) -> list[str]:
    return [*_WATCHROOM, "open", root]


def measure(rows: int = 100_000, rate: float = 1_000, seconds: float = 20) -> list[Measure]:
    with scratch() as folder:
        keep_bytecode(folder)
        big, busy = os.path.join(folder, "big"), os.path.join(folder, "busy")
        # What another dashboard remembered must not decide on which screen these open.
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "config")
        build(big, rows)
        build(busy, 1_000, agents=200)
        for root in (big, busy):
            save_as(root, _LAST)
        return [*first_paint(big, busy, rows), *one_commit(big), *under_load(busy, rate, seconds)]


def save_as(root: str, name: str) -> None:
    with Workspace.open(root, scan=False) as workspace:
        tools = workspace.tools(min(workspace.config.agents))
        tools.dispatch_tool_call("save_to_my_workspace", {"filename": f"{name}.md", "content": "…"})


def first_paint(big: str, small: str, rows: int, rounds: int = 9) -> list[Measure]:
    """From starting the program to the newest row's text on the screen, beside the least there can be."""
    cases = {
        "minimal app": (_MINIMAL, GREETING),
        f"{rows:,} rows": (open_command(big), _LAST),
        "1,000 rows": (open_command(small), _LAST),
    }
    painted: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (command, text) in cases.items():
            with Terminal(command) as terminal:
                painted[name].append(terminal.wait_for_bytes(text.encode(), timeout=30) - terminal.started)
    least = painted["minimal app"]
    return [
        Measure(
            f"first paint ÷ minimal app's, {name}",
            median(ours / minimal for ours, minimal in zip(seconds, least, strict=True)),
            "×",
            1.4,
            remark=f"{median(seconds) * 1e3:.0f} ms, {median(least) * 1e3:.0f} ms",
        )
        for name, seconds in painted.items()
        if name != "minimal app"
    ]


def _memory(name: str, used: Usage) -> Measure:
    """Of all processes of the dashboard."""
    remark = f"{used.rss / 1e6:.1f} MB with what its processes share counted for each"
    return Measure(name, used.once / 1e6, "MB", 75, remark=remark)


def one_commit(root: str, count: int = 60) -> list[Measure]:
    """A commit by this process, and how long after it its row is on the dashboard's screen; then rest."""
    with Terminal(open_command(root)) as terminal, Workspace.open(root, scan=False) as workspace:
        _loaded(terminal)
        tools = workspace.tools(min(workspace.config.agents))
        delays = []
        for n in range(_SINGLE, _SINGLE + count):
            since = terminal.mark()
            returned = save(tools, n)
            delays.append(terminal.wait_for_bytes(marker(n).encode(), since=since) - returned)
            # Another moment of the frame each time.
            time.sleep(0.12 + 0.007 * (n % 10))
        terminal.settle(1.0)
        time.sleep(2)
        before = terminal.usage()
        time.sleep(10)
        after = terminal.usage()
    return [
        Measure(
            "one commit → screen, p95",
            percentile(delays, 95) * 1e3,
            "ms",
            16,
            remark=f"p50 {median(delays) * 1e3:.1f} ms",
        ),
        Measure("CPU of the idle dashboard", (after.cpu - before.cpu) * 10, "%", 0.3, remark="over 10 s"),
        _memory("memory over the long journal", after),
    ]


def under_load(root: str, rate: float, seconds: float) -> list[Measure]:
    """While another process writes: how far the screen is behind, what it costs, and how keys fare."""
    with Terminal(open_command(root)) as terminal:
        _loaded(terminal)
        _key_latencies(terminal, 2)
        idle = _key_latencies(terminal, _PRESSES)
        since = terminal.mark()
        work = [sys.executable, str(_HERE / "load.py"), root, "200", str(rate), str(seconds)]
        with subprocess.Popen(work, stdout=subprocess.PIPE, text=True) as writer:
            terminal.wait_for_bytes(marker(0)[:4].encode(), since=since, timeout=30)
            before, start = terminal.usage(), time.monotonic()
            time.sleep(seconds / 2)
            after, end = terminal.usage(), time.monotonic()
            busy = _key_latencies(terminal, 20)
            saved = json.loads(writer.communicate()[0])
        terminal.settle(0.5)
        used = terminal.usage()
        delays = [
            delay
            for (_, at), delay in zip(saved, screen_delays(terminal, since, saved), strict=True)
            if start < at < end
        ]
    achieved = 2 * len(saved) / (saved[-1][1] - saved[0][1])
    label = f"200 agents, {rate:,.0f} rows a second"
    return [
        Measure(
            f"{label}: commit → screen, p95",
            percentile(delays, 95) * 1e3,
            "ms",
            60,
            remark=f"p50 {median(delays) * 1e3:.0f} ms; {achieved:,.0f} rows a second were written",
        ),
        Measure(
            "key → another screen, p95",
            percentile(idle, 95) * 1e3,
            "ms",
            25,
            remark=f"p50 {median(idle) * 1e3:.1f} ms",
        ),
        Measure(f"{label}: CPU, of one core", (after.cpu - before.cpu) / (end - start) * 100, "%", 15),
        Measure(
            f"{label}: key → screen ÷ when idle",
            median(busy) / median(idle),
            "×",
            1.5,
            remark=f"{median(busy) * 1e3:.1f} ms, {median(idle) * 1e3:.1f} ms (another screen opens)",
        ),
        _memory(f"{label}: memory", used),
    ]


def _loaded(terminal: Terminal) -> None:
    """Wait until the dashboard has read the whole journal: it shows the newest rows before the rest."""
    terminal.wait_for_bytes(_LAST.encode(), timeout=30)
    quiet = 0
    before = terminal.usage().cpu
    while quiet < 3:
        time.sleep(0.5)
        now = terminal.usage().cpu
        quiet = quiet + 1 if now - before < 0.05 else 0
        before = now


def _key_latencies(terminal: Terminal, count: int) -> list[float]:
    delays = []
    for n in range(count):
        key, text = _KEYS[n % 2]
        since = terminal.mark()
        sent = terminal.send(key)
        delays.append(terminal.wait_for_bytes(text, since=since) - sent)
        time.sleep(0.15)
    return delays


def screen_delays(terminal: Terminal, since: int, saved: list[tuple[str, float]]) -> list[float]:
    """For each save, how long after it the screen showed it, or one that came later."""
    rank = {name.encode(): n for n, (name, _) in enumerate(saved)}
    delays: list[float] = []
    tail = b""
    for chunk in terminal.chunks(since):
        window = tail + chunk.data
        shown = max((rank.get(name, -1) for name in _MARKER.findall(window)), default=-1)
        delays.extend(chunk.at - saved[n][1] for n in range(len(delays), shown + 1))
        tail = window[-8:]
    if len(delays) < len(saved):
        raise NotSeen(f"{len(saved) - len(delays)} of {len(saved)} saves never reached the screen")
    return delays


if __name__ == "__main__":
    print(table(measure()))
