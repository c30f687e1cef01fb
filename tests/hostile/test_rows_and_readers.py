"""Rows written with SQL past every check: each command and each screen reads on, and shows the other rows."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from time import time_ns
from typing import cast

import pytest
from calls import ok, refused
from cli.running import run
from effort import rounds
from hostile.altered_rows import RowChanger, mixed
from hostile.rows import HostileRow, RowMaker, insert_into_file, insert_into_server
from simulation.playing import run_until
from tasking import machine_sandbox
from tui.driver import User, past
from watchroom import Workspace
from watchroom.agents.simulation import Simulation, roster
from watchroom.errors import JournalDamaged
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import urgent_needs
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.location import find_journal, keep_journal_address
from watchroom.kernel.journal import open_journal
from watchroom.model import Row, Zone
from watchroom_cli.watch.views import VIEWS, view_of
from watchroom_cli.watch.watch import watch_plainly
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.need_texts import need_sentence
from watchroom_tui.presentation.localization import load_texts

pytestmark = pytest.mark.slow(30)

KEPT = "kept"
"""Paths that begin so are left alone."""
WORD = "Zanzibar"
"""In the text of the row that is left alone."""
ROWS = rounds(150, 2000)
CASES = [
    *(("sqlite", seed) for seed in range(rounds(1, 50))),
    *(("postgres", seed) for seed in range(rounds(1, 5))),
]
"""By backend and seed: 10^5 rows on SQLite and 10^4 on a server where faults are hunted."""
MAY_SAY_INCOMPLETE = {"verify", "export", "fork", "policy", "proof"}
"""Commands whose status is 1 where rows cannot be read, no row is sealed yet, or an agent is not known any more."""
SCREENS = (
    "overview",
    "agents",
    "handoffs",
    "files",
    "documents",
    "boards",
    "requests",
    "activity",
    "tasks",
    "usage",
)


def fill(root: Path, folder: Path) -> None:
    """Make rows of every kind that tools make, in the workspace at ``root``."""
    with Workspace.open(root, agents=["alice", "bob", "charlie"], sandbox=machine_sandbox()) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        dana = workspace.tools_for_human("dana")
        for expected, text in enumerate(("one\n", "two\n")):
            ok(
                alice,
                "collab_write",
                filepath="plan.md",
                content=text,
                message="m",
                expected_version=expected,
            )
        refused(bob, "collab_write", filepath="plan.md", content="late\n", message="m", expected_version=1)
        ok(bob, "collab_write", filepath="plan.md", content="over\n", message="m", expected_version=-1)
        ok(alice, "save_to_my_workspace", filename="notes.md", content="mine")
        refused(bob, "save_to_my_workspace", filename="../x", content="")
        for name in ("raw.md", "more.md"):
            ok(alice, "handoff_file", to_agent="bob", filename=name, content="data", message="for you")
        ok(bob, "read_handoff", from_agent="alice", filename="raw.md")
        ok(bob, "acknowledge_handoff", from_agent="alice", filename="raw.md")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="three\n")
        _make_documents(workspace)
        board = {"board": "bottom-layer-alice", "content": "# Board\n\n## Log\n"}
        ok(alice, "whiteboard_write", **board, message="m", expected_version=-1)
        ok(alice, "whiteboard_append", board="bottom-layer-alice", content="An entry.")
        workspace.members.start(workspace.tasks.submit("human:dana", "Build it.", folder))
        first = workspace.tools("root")
        ok(first, "spawn_agent", role="programmer", instructions="Write.", name="eve")
        eve = workspace.tools("eve")
        ok(eve, "write_file", path="calc/value.py", content="a = 1\n")
        ok(eve, "send_message", to="root", payload={"text": "It is written."})
        ok(first, "send_message", to="user", payload={"text": "Look."})
        eve.dispatch_tool_call("run_command", {"command": "echo said"})
        ok(first, "terminate_agent", agent_id="eve", reason="done")
        call = PendingCall("c1", "run_command", '{"command": "make"}')
        workspace.requests.ask(CallContext("alice"), "alice/1/1", Request("approve", calls=(call,)))
        asked = workspace.requests.ask(CallContext("bob"), "bob/1/1", Request("prompt", prompt="What?"))
        ok(dana, "answer_request", request=asked.seq, text="That.")
        ok(dana, "set_budget", scope="team", measure="tokens", most=10**9)
        ok(bob, "collab_write", filepath="by-bob.md", content="x\n", message="m", expected_version=0)
        ok(dana, "revert_work", agents=["bob"])
        agents = roster(4)
        workspace.register(agents)
        enough = workspace.journal.last_seq() + 60
        run_until(
            workspace,
            Simulation(workspace, agents, seed=3, speed=0),
            lambda: workspace.journal.last_seq() > enough,
        )
        kept = {"filepath": f"{KEPT}.md", "content": f"{WORD}\n", "message": "kept"}
        ok(alice, "collab_write", **kept, expected_version=0)
        workspace.flush()


def _make_documents(workspace: Workspace) -> None:
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    schema = {
        "title": "lww_register",
        "body": "rga",
        "tags": "or_set",
        "map": "lww_map",
        "count": "pn_counter",
    }
    for name in ("doc", KEPT):
        ok(alice, "realtime_create_document", doc_id=name, schema=schema)
        on = {"doc_id": name}
        ok(alice, "realtime_set_field", **on, field_name="title", value="A title")
        ok(alice, "realtime_set_field", **on, field_name="map", key="k", value=1)
        ok(
            bob,
            "realtime_edit_text",
            **on,
            field_name="body",
            operation="insert",
            args={"position": 0, "text": "hello"},
        )
        ok(bob, "realtime_edit_set", **on, field_name="tags", operation="add", element="x")
        ok(bob, "realtime_edit_counter", **on, field_name="count", operation="increment", amount=2)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace with rows of every kind, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    fill(folder / "team", folder / "task")
    return folder / "team"


def hostile_rows(root: Path, seed: int, outside: Path, *, on_server: bool) -> Iterator[HostileRow]:
    """Random rows after those of the workspace at ``root``: half of them from scratch, half made of its own."""
    with closing(open_journal(find_journal(root) or "")) as journal:
        random, last = Random(seed), journal.last_seq()
        maker = RowMaker(random, outside, last=last, with_nul=not on_server, with_bytes=True)
        changer = RowChanger(random, journal, outside, kept=KEPT)
        yield from mixed(random, [maker.rows(ROWS // 2), changer.rows(ROWS - ROWS // 2)])


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spoil(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[int], Path]:
    """Makes a workspace, and inserts the rows of a seed; gives its folder."""

    def make(seed: int) -> Path:
        root, outside = tmp_path / str(seed) / "team", tmp_path / "outside"
        outside.mkdir(exist_ok=True)
        if backend == "postgres":
            address = request.getfixturevalue("reused_database").empty()
            keep_journal_address(root, address)
            fill(root, tmp_path / str(seed) / "task")
            taken = insert_into_server(address, hostile_rows(root, seed, outside, on_server=True))
        else:
            shutil.copytree(request.getfixturevalue("filled"), root)
            taken = insert_into_file(root, hostile_rows(root, seed, outside, on_server=False))
        assert taken > ROWS // 3, "so few rows were taken that nothing is tried"
        return root

    return make


def _commands(root: str, out: Path) -> Iterator[tuple[str, ...]]:
    """Every command that reads, as it is typed."""
    yield from (("show", root, view) for view in VIEWS)
    yield from (("show", root, view, "--json") for view in ("needs", "boards", "agents"))
    yield ("show", root, "needs", "--at", "100")
    yield ("log", root, "--steps", "--limit", "100000")
    yield ("log", root, "--json", "--limit", "100000")
    yield from (("report", root, "--format", name) for name in ("md", "html", "json", "proof"))
    yield from (("diff", root, "--from", "1", *more) for more in ((), ("--patch",), ("--json",)))
    yield ("search", root, WORD)
    yield from (("usage", root, "--by", key) for key in ("agent", "model", "day", "task", "session"))
    yield ("traces", root, "--json", "--content")
    yield ("verify", root)
    yield ("policy", "explain", root, "alice", "run_command", '{"command": "make"}')
    yield ("export", root, str(out / "exported"))
    yield from (("git", root, "--export", str(out / per), "--per", per) for per in ("version", "session"))
    yield ("fork", root, str(out / "fork"))


def _read_all(capsys: pytest.CaptureFixture[str], root: Path, out: Path) -> dict[str, str]:
    """Run every command that reads. Gives what each printed, by what was typed without the folder."""
    out.mkdir(exist_ok=True)
    said = {}
    for command in _commands(str(root), out):
        status, text, err = run(capsys, *command)
        assert status == 0 or (status == 1 and MAY_SAY_INCOMPLETE.intersection(command)), (command, err)
        assert "Traceback" not in err, (command, err)
        said[" ".join(each for each in command if each != str(root))] = text + err
    return said


@pytest.mark.parametrize(("backend", "seed"), CASES)
def test_every_command_reads_on(
    seed: int, spoil: Callable[[int], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, out = spoil(seed), tmp_path / str(seed) / "out"
    said = _read_all(capsys, root, out)
    assert f"{KEPT}.md" in said["show files"]
    assert KEPT in said["show documents"]
    assert WORD in said[f"search {WORD}"]
    assert "unknown zone" in said["verify"]
    assert (out / "exported/collaborative/current" / f"{KEPT}.md").read_text() == f"{WORD}\n"
    for per in ("version", "session"):
        shown = ("git", "-C", str(out / per), "show", f"HEAD:collaborative/current/{KEPT}.md")
        assert subprocess.run(shown, capture_output=True, check=True).stdout == f"{WORD}\n".encode()
    options = Namespace(language="en", person="dana", all_rows=True, seconds=0.1)
    with closing(open_journal(find_journal(root) or "")) as journal:
        assert watch_plainly(journal, str(root), options, None) == 0
    shutil.rmtree(root.parent)


@pytest.mark.parametrize("seed", range(rounds(5, 50)))
def test_the_model_takes_in_any_row_and_no_projection_fails(
    filled: Path, tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(open_journal(find_journal(filled) or "")) as journal:
        before = {row.seq: (row, journal.content(row.seq)) for row in journal.rows(0, limit=10_000)}
    contents: dict[int, bytes | None] = {}

    def content(number: int) -> str | None:
        try:
            return before[number][1] if number in before else (contents[number] or b"").decode()
        except UnicodeDecodeError as error:
            raise JournalDamaged from error

    fold = Fold(content, lambda number: before[number][0] if number in before else None)
    fold.apply(row for row, _ in before.values())
    texts = load_texts("en")
    for count, each in enumerate(hostile_rows(filled, seed, tmp_path, on_server=False), 1):
        *fields, detail, contents[each.seq] = each
        row = Row._make([*fields, detail.decode("utf-8", "replace")])
        fold.apply([row])
        labels.row_message(row), labels.outcome_span(row, texts), labels.tool_label(row, texts)
        if count % 1000 == 0 or count == ROWS:
            model = fold.model()
            for view in VIEWS:
                view_of(model, view, texts, str)
            for need in urgent_needs(model, model.time):
                need_sentence(need, texts)
            again = Fold.load(content, lambda number: None, json.loads(json.dumps(fold.dump())))
            assert again.model().files == model.files
    assert f"{KEPT}.md" in {each.path for each in fold.model().files}
    # The one place that isolates faults of projections has had nothing to isolate.
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize(("backend", "seed"), CASES)
async def test_every_screen_reads_on(seed: int, spoil: Callable[[int], Path]) -> None:
    root = spoil(seed)
    with closing(open_journal(find_journal(root) or "")) as journal:
        rows = [row.seq for row in journal.rows(limit=100_000)]
        # The newest moment, and one in the middle of what was written past the tools. Not all numbers are used.
        for until in (rows[-1], rows[-1 - ROWS // 2]):
            async with past(journal, until) as user:
                await user.sees_no("reading the journal")
                await _visit_all(user)


async def _visit_all(user: User) -> None:
    """Go to each screen, and look at the first, the last and some other entries of each of its panes."""
    for key, screen in zip("1234567890", SCREENS, strict=True):
        await user.goes_to(key, screen)
        for _ in range(len(user.shown_panes())):
            await user.press("G", "g", *["down"] * rounds(2, 20))
            await user.press("tab")
    await user.goes_to("4", "files")
    # Of hundreds of planted files it is not on the first page.
    above = [each.path for each in user.list("shared").items].index(f"{KEPT}.md")
    await user.press("g", *["down"] * above)
    await user.sees(f"{KEPT}.md")
    for _ in range(rounds(3, 30)):
        await user.press("exclamation_mark")


ONE_ROW: list[tuple[str, str, bytes]] = [
    ("board", "zzz", b"a board"),
    ("realtime", "x", b"x"),
    ("realtime", "deep", b'{"schema":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    ("private", "alice/", b"x"),
    ("collab", "bytes.md", b"\xff\xfe"),
    ("session", "alice/1", b"[]"),
    ("request", "alice/1/9", b"{}"),
    ("revert", "00000000", b'{"written": 7}'),
    ("buffer", "alice/plan", b"x"),
    ("command", "x/1", b"[]"),
    ("task", "x", b"{"),
]
"""What one row by an agent's own address, or by SQL, did to the commands of everybody: zone, path and content."""


@pytest.mark.parametrize(
    ("zone", "path", "content"), ONE_ROW, ids=[f"{zone} {path}" for zone, path, _ in ONE_ROW]
)
def test_one_row_ends_no_command_for_everybody(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], zone: str, path: str, content: bytes
) -> None:
    root = tmp_path / "team"
    shutil.copytree(filled, root)
    with closing(open_journal(find_journal(root) or "")) as journal:
        last = journal.last_seq()
        head = journal.head(cast("Zone", zone), path)
    version, checksum = (head.version or 0) + 1 if head else 1, hashlib.sha256(content).hexdigest()
    rest = ("ok", "", "", checksum, len(content), b"{}", content)
    row = HostileRow(last + 1, time_ns(), "alice", "write", zone, path, version, None, *rest)
    assert insert_into_file(root, [row]) == 1
    said = _read_all(capsys, root, tmp_path)
    assert f"{KEPT}.md" in said["show files"]
    if zone == "board":
        assert path in said["show boards"]
    if zone in ("collab", "realtime"):
        assert f"{zone}/{path}" in said["diff --from 1"]
        assert f"{zone}/{path}" in said[f"export {tmp_path / 'exported'}"]
    if zone == "collab":
        assert str(row.seq) in said[f"fork {tmp_path / 'fork'}"]
