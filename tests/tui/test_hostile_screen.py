"""Texts of agents cannot control the terminal, by the raw bytes that a real terminal gets."""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from calls import ok, refused
from hypothesis import example, given
from hypothesis import strategies as st
from pty_driver import Terminal
from runtime.weather import call, calling
from tui.sessions import asks, running
from tui.societies import begins, runs
from watchroom import Toolbox, Workspace
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

pytestmark = pytest.mark.slow(10)
LAST: Final = "zz-the-last-row"
DEPENDENT: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400)]))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
    + "\u302e\u302f"
    + "".join(map(chr, [*range(0x2630, 0x2638), *range(0x268A, 0x2690), *range(0x3248, 0x3250)]))
    + "".join(map(chr, [*range(0x1D300, 0x1D357), *range(0x1D360, 0x1D377)]))
)
"""Printable characters that are invisible alone, or have different widths in different terminals."""

HOSTILE: Final = {
    "colour": "\x1b[31mRED",
    "title": "\x1b]0;OWNED\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "bell": "ding\x07dong",
    "c1": "\x9b31mC1",
    "c1 string": "\x9d0;C1OWNED\x9c",
    "return": "good\rEVIL",
    "backspace": "ab\x08\x08cd",
    "click": "[@click=app.quit]press me[/]",
    "closing": "[/foo]",
    "bidi": "user\u202etxt.exe",
    "isolate": "a\u2066b\u2069c",
    "entity": "&#8238;reversed",
    "zero width": "pass\u200bword\ufeff",
    "combining": "Z" + "\u0301\u0302\u0303" * 20,
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "tag": "x\U000e0041y",
    "line separator": "one\u2028two",
}
"""Hostile texts, by their effect."""

FORBIDDEN: Final = {
    "colour": "\x1b[31mRED",
    "title": "\x1b]0;OWNED",
    "link": "\x1b]8;;https://evil",
    "clipboard": "\x1b]52;c;ZXZpbA==",
    "bell": "\x07",
    "c1": "\u009b",
    "c1 string": "\u009d",
    "return": "\rEVIL",
    "backspace": "\x08",
    "bidi": "\u202e",
    "isolate": "\u2066",
    "zero width": "\u200b",
    "byte order mark": "\ufeff",
    "joiner": "\u200d",
    "tag": "\U000e0041",
    "line separator": "\u2028",
}
"""Byte sequences that must not occur. Textual itself sends none of them."""

VISIBLE: Final = (
    *("␛[31mRED", "␛]0;OWNED␇", "␛]8;;https://evil.example␛\\here", "␛]52;c;ZXZpbA==␇", "ding␇dong"),
    *("[@click=app.quit]press me[/]", "[/foo]", "&#8238;reversed", "good␍EVIL", "ab␈␈cd"),
)
"""Texts that must be on the screen instead."""

TEXT: Final = "\n".join(HOSTILE.values())
LONG: Final = "L" * 5_000 + "\x1b[31m" + "\u202e" * 5_000


def spread(toolbox: Toolbox, other: Toolbox, receiver: str) -> None:
    """Write hostile text wherever an agent can."""
    for name, text in HOSTILE.items():
        refused(toolbox, text, filepath="x")
        refused(toolbox, "save_to_my_workspace", filename=text + "\x00", content=text)
        refused(toolbox, "read_from_workspace", agent_id=text, filename=text)
        ok(toolbox, "save_to_my_workspace", filename=f"{name}.md", content=text, message=text)
    for tool, arguments in (
        ("save_to_my_workspace", {"filename": "all.md"}),
        ("handoff_file", {"to_agent": receiver, "filename": "all.md"}),
        ("collab_write", {"filepath": "all.md", "expected_version": 0}),
    ):
        message = " ".join(HOSTILE.values())[:2000]
        ok(toolbox, tool, **arguments, content=f"{TEXT}\n{LONG}\n{TEXT}", message=message)
    arguments = {"filepath": "all.md", "content": TEXT, "message": HOSTILE["link"], "expected_version": 0}
    refused(other, "collab_write", **arguments)
    for number, name in enumerate(("[@click=app.quit]x[", "[bold]", "&#8238;x", "e\u0301x", "👨x")):
        path = unicodedata.normalize("NFC", f"{number}{name}.md")
        ok(toolbox, "collab_write", filepath=path, content=TEXT, message=TEXT[:500], expected_version=0)
    ok(
        other,
        "acknowledge_handoff",
        from_agent=toolbox.actor,
        filename="all.md",
        message=HOSTILE["clipboard"],
    )
    ok(other, "save_to_my_workspace", filename=f"{LAST}.md", content="x")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("hostile") / "team")


async def speak(workspace: Workspace) -> None:
    """Write hostile text in sessions: in texts, calls, questions and options, and in messages to a person."""
    evil = call(
        "handoff_file", to_agent=HOSTILE["link"], filename=HOSTILE["title"], content=TEXT, message="x"
    )
    unknown = call(HOSTILE["clipboard"], "call_2", **{HOSTILE["bell"]: HOSTILE["bidi"]})
    said = calling(evil, unknown, content=TEXT)
    async with running(workspace, "bob", said, asks(TEXT, *HOSTILE.values(), several=True), task=TEXT):
        await _asked(workspace, 1)
    save = call("save_to_my_workspace", filename=HOSTILE["click"], content=TEXT, message=HOSTILE["return"])
    async with running(workspace, "alice", calling(save), task=TEXT, ask=["save_to_my_workspace"]):
        await _asked(workspace, 2)


async def _asked(workspace: Workspace, count: int) -> None:
    """Wait until ``count`` requests are open."""
    committed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(committed.set)

    end = workspace.subscribe(wake)
    while len(list(workspace.journal.heads("request"))) < count:
        await asyncio.wait_for(committed.wait(), 20)
        committed.clear()
    end()


def take_a_task_on(workspace: Workspace, folder: Path) -> None:
    """Write hostile text in a task: its text, messages, files, names, commands and output."""
    begins(workspace, folder, TEXT)
    root = workspace.tools("root")
    ok(root, "spawn_agent", role=HOSTILE["title"], instructions=TEXT, name="mallory")
    for name, text in HOSTILE.items():
        ok(root, "send_message", to="user", payload={"text": text})
        ok(root, "write_file", path=f"{name}.md", content=text)
        (folder / text.replace("/", "")).write_text(text, encoding="utf-8")
    if workspace.commands.sandbox.best is not None:
        (folder / "all").write_text(TEXT, encoding="utf-8")
        runs(workspace, "root", f"cat all; cat all >&2; : '{HOSTILE['clipboard']}'")
        runs(workspace, "mallory", f"{HOSTILE['click']} {HOSTILE['link']}")
    ok(root, "terminate_agent", agent_id="mallory", reason=HOSTILE["clipboard"])


def made(root: Path) -> Path:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        asyncio.run(speak(workspace))
        take_a_task_on(workspace, root.parent / "task")
        spread(workspace.tools("alice"), workspace.tools("bob"), "bob")
        for number, text in enumerate(HOSTILE.values()):
            name = text.replace("/", "").replace("\x00", "")
            (root / f"agents/alice/outside{number}{name}").write_text(text, encoding="utf-8")
        (root / "collaborative/current/all.md").write_text(TEXT + "by hand", encoding="utf-8")
        workspace.scan()
        ok(workspace.tools("bob"), "save_to_my_workspace", filename=f"{LAST}.md", content="y")
    return root


ESC: Final = "\x1b[27u"
"""The escape key in the keyboard protocol. A bare ESC would join the following text to one key."""

ROUNDS: Final = {
    # Show as much as possible of each screen: every pane, ends of lists, contents, whole rows, sideways,
    # help.
    "overview": ("1", "\t", "\t", "G", "\r", "G", "g", "l" * 3, ESC, "\t"),
    "agents": ("2", "g", "\r", *"jjjjjjjj", "\r", "G", "g", "l" * 3, "\t", "G", "\r", ESC),
    "handoffs": ("3", "\r", "G", "g", "l" * 3, "\t"),
    "files": ("4", *"jjjjj", "\r", *"jj", "d", "\r", "G", "l" * 3, "\t"),
    "requests": ("7", "j", "\r", "e", ESC, "G", "g", "\t", "j", "\t", "\t", "j", " ", "s", "z", "G", "g"),
    "activity": ("8", *(("j",) * 12), "\r", "G", "g", ESC, "/", *"evil", "\r", ESC, "o", "o", "o", "G"),
    "tasks": ("9", "d", "G", ESC, *(("\t", "G", "g") * 6), "m", ESC, "\t", "C", ESC, "f", ESC),
    "urgent": (
        "!",
        "G",
        "g",
        "l" * 3,
        "\t",
        "l" * 3,
        "c",
        "e",
        ESC,
        "d",
        "G",
        ESC,
        "a",
        "i",
        "w",
        ESC,
        "?",
        ESC,
    ),
}


POINTER_SHAPE: Final = re.compile(rb"\x1b\]22;[a-z-]*\x07")

ARRIVED: Final = {
    "overview": "Needs you",
    "agents": "Activity",
    "handoffs": "acknowledged",
    "files": "Versions",
    "requests": "Requests",
    "activity": "outcome",
    "tasks": "Commands",
    "urgent": "incoming",
}
"""Texts that appear only when the keys of the round before are handled."""


def press(terminal: Terminal, key: str) -> None:
    """Press a key, and wait for its complete answer, if any."""
    since = terminal.mark()
    terminal.send(key)
    terminal.wait_for_output(since, timeout=0.15)
    terminal.wait_until_idle(0.03)


def look_around(terminal: Terminal) -> None:
    terminal.wait_for_text("alice")
    terminal.wait_until_idle()
    for screen, keys in ROUNDS.items():
        for number, key in enumerate(keys):
            press(terminal, key)
            if number == 0:
                terminal.wait_for_text(ARRIVED[screen])
            if (screen, key) == ("requests", "e"):
                # Wait until the workspace is open, or the next keys would be typed elsewhere.
                terminal.wait_for_text("Arguments of")
        terminal.wait_until_idle()


@pytest.fixture(scope="module")
def terminals(hostile: Path) -> Iterator[dict[str, Terminal]]:
    """Terminals, by size, after a tour of all screens. They run in parallel, because they mostly wait."""
    command = [sys.executable, "-m", "watchroom_cli.main", "open", str(hostile)]
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        found = {
            f"{columns}x{rows}": stack.enter_context(Terminal(command, columns, rows))
            for columns, rows in ((120, 40), (80, 24))
        }
        for done in [pool.submit(look_around, terminal) for terminal in found.values()]:
            done.result()
        yield found


@pytest.mark.parametrize("size", ["120x40", "80x24"])
def test_no_hostile_sequence_reaches_the_terminal_and_its_picture_does(
    terminals: dict[str, Terminal], size: str
) -> None:
    terminal = terminals[size]
    # Textual sets the shape of the pointer with an OSC 22 that ends with a BEL.
    since_start = POINTER_SHAPE.sub(b"", terminal.raw())
    for name, sequence in FORBIDDEN.items():
        assert sequence.encode() not in since_start, name
    assert not any(byte in since_start for byte in (b"\x9b31m", b"\x9d0;C1")), "C1 as single bytes"
    text = since_start.decode("utf-8", "replace")
    missing = [picture for picture in VISIBLE if picture not in text]
    assert missing == []
    assert terminal._process.poll() is None, "the dashboard still runs"


def clicks(column: int, row: int) -> str:
    """Return a press and a release of the left button (SGR, counted from 1)."""
    return f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"


def test_clicking_on_markup_runs_nothing(hostile: Path) -> None:
    command = [sys.executable, "-m", "watchroom_cli.main", "open", str(hostile)]
    with Terminal(command, 80, 24) as terminal:
        terminal.wait_for_text("alice")
        terminal.wait_until_idle()
        click_around(terminal)


def click_around(terminal: Terminal) -> None:
    clicked = 0
    # The list, the matching row, and the whole row.
    for keys in (("8",), ("/", *"click.md", "\r"), ("\r",)):
        for key in keys:
            press(terminal, key)
        terminal.wait_until_idle()
        for row, line in enumerate(terminal.screen(), start=1):
            column = line.find("@click")
            if column >= 0:
                clicked += 1
                press(terminal, clicks(column + 3, row))
    assert clicked, "there was something to click on"
    assert terminal._process.poll() is None, "a click on an agent's text ended the dashboard"
    for key in (ESC, ESC, "1"):
        press(terminal, key)
    terminal.wait_for_text("watchroom")


def test_the_dashboard_still_answers_and_ends_in_order(terminals: dict[str, Terminal]) -> None:
    terminal = terminals["120x40"]
    press(terminal, "1")
    terminal.send("q")
    # A merge was started on the tour.
    terminal.wait_for_text("Quit and discard")
    terminal.send("\r")
    assert terminal.wait() == 0


# -- sanitize

DANGEROUS: Final = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}
any_text = st.text(st.characters(exclude_categories=()))
every_text = st.one_of(any_text, st.text(st.sampled_from("".join(HOSTILE.values()))))


@given(every_text)
@example("\x1b[31m")
@example("\ud800")
@example("\U000e0001\U0010ffff")
def test_sanitized_text_has_no_control_or_invisible_characters(text: str) -> None:
    found = {unicodedata.category(character) for character in sanitize(text)}
    assert not found & DANGEROUS
    assert "\n" not in sanitize(text)


@given(every_text)
def test_safe_loses_nothing_that_can_be_printed_and_keeps_its_order(text: str) -> None:
    shown = iter(sanitize(text))
    for character in text:
        if character.isprintable() and character not in DEPENDENT:
            assert any(character == each for each in shown), f"{character!r} was lost"


@given(every_text)
def test_unprintable_characters_become_visible(text: str) -> None:
    for character in text:
        shown = sanitize(character)
        assert shown
        if (not character.isprintable() or character in DEPENDENT) and unicodedata.category(
            character
        ) != "Zs":
            assert shown.strip(), f"{character!r} vanished"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u26a0\ufe0f ok", "\u26a0 ok"),
        ("\u231a\ufe0e", "\u231a"),
        ("1\ufe0f\u20e3", "1\u20e3"),
        ("\U0001f44d\U0001f3fd", "\U0001f44d"),
        ("a\ufe0f", "a‹VS+FE0F›"),
        ("\u26a0\ufe0f\ufe0f", "\u26a0‹VS+FE0F›"),
        ("\U0001f3fd", "‹EMFT+1F3FD›"),
        ("\u845b\U000e0100", "\u845b\U000e0100"),
        ("\u845b\U000e0100\U000e0101", "\u845b\U000e0100‹VS+E0101›"),
        ("\u3164x", "‹HF+3164›x"),
        ("\u2630 menu", "‹TFH+2630› menu"),
    ],
)
def test_emoji_are_shown_in_a_form_of_the_same_width_everywhere(text: str, shown: str) -> None:
    assert sanitize(text) == shown


@given(every_text)
def test_safe_text_stays_as_it_is(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)


@given(every_text)
def test_lines_are_split_at_line_feeds_only_and_each_is_safe(text: str) -> None:
    lines = sanitize_lines(text)
    assert len(lines) == text.count("\n") + 1
    assert all(sanitize(line) == line for line in lines)


def test_different_controls_look_different() -> None:
    controls = [chr(code) for code in itertools.chain(range(0x20), range(0x7F, 0xA0)) if chr(code) != "\t"]
    assert len({sanitize(control) for control in controls}) == len(controls)
