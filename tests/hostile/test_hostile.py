"""Bad input through the toolbox: refused in words, kept as a row, and without a trace in the tree."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import pytest
from calls import ok, refused
from evidence import all_rows, snapshot
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from watchroom import Json, Toolbox, Workspace
from watchroom.errors import InvalidAgentId, UnknownAgent
from watchroom.model import MAX_TEXT_BYTES
from watchroom.texts import LANGUAGES, Language
from watchroom.toolbox.definitions import TOOLS

BAD_PATHS: Final = {
    "nothing": "",
    "parent": "..",
    "parent below": "a/../../b",
    "parent at the end": "a/..",
    "parent deep": "../" * 40 + "etc/passwd",
    "here": ".",
    "here below": "a/./b",
    "absolute": "/etc/passwd",
    "absolute twice": "//etc/passwd",
    "home": "~/../x",
    "empty part": "a//b",
    "folder": "a/",
    "drive": "C:",
    "drive below": "c:/x",
    "drive relative": "d:x",
    "backslash": "a\\b",
    "backslash parent": "..\\..\\x",
    "UNC": "\\\\server\\share",
    "device path": "\\\\?\\C:\\x",
    "NUL": "a\0b",
    "NUL at the end": "a.md\0",
    "newline": "a\nb",
    "tab": "a\tb",
    "escape": "a\x1b[2Jb",
    "delete": "a\x7fb",
    "C1 control": "a\x9bb",
    "fullwidth dots": "．．/x",
    "fullwidth slash": "a／b",
    "fullwidth backslash": "a＼b",
    "small full stop": "﹒﹒/x",
    "small reverse solidus": "a﹨b",
    "one dot leader": "․․/x",
    "two dot leader": "‥/x",
    "ellipsis": "…",
    "division slash": "a∕b",
    "fraction slash": "a⁄b",
    "big solidus": "a⧸b",
    "set minus": "a∖b",
    "care of": "a℅b",
    "bidi override": "a\u202egnp.exe",
    "bidi isolate": "a\u2066b",
    "zero-width space": "a\u200bb",
    "zero-width joiner": "a\u200db",
    "word joiner": "a\u2060b",
    "byte order mark": "\ufeffa",
    "soft hyphen": "a\u00adb",
    "tag characters": "a\U000e0041b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "private use": "a\ue000b",
    "unassigned": "a\u0378b",
    "non-character": "a\uffffb",
    "decomposed": "e\u0301.md",
    "decomposed Hangul": "\u1112\u1161\u11ab.md",
    "compatibility Kelvin": "\u212a.md",
    "long part": "x" * 201,
    "long part in bytes": "文" * 67,
    "long path": "/".join(["x" * 99] * 11),
    "control folder": ".watchroom/journal.db",
    "control folder below": "a/.watchroom/x",
    "control folder in capitals": ".WatchRoom/config.toml",
    "versions": ".versions/x",
    "git": ".git/hooks/pre-commit",
    "device": "con",
    "device with ending": "NUL.txt",
    "device below": "a/com1.tar.gz",
    "device with a superscript": "COM¹",
    "console in": "CONIN$",
    "device before a space": "con .txt",
    "trailing dot": "a.",
    "trailing dot in a folder": "a./b",
    "trailing space": "a ",
    "leading space": " a",
    "trailing space in a folder": "a /b",
    "no-break space": "a\u00a0",
    "only spaces": "   ",
    "alternate data stream": "a.txt:hidden",
}

BAD_CALLS: Final[dict[str, tuple[str, Any, str]]] = {
    "unknown tool": ("run_shell", {"command": "rm -rf /"}, "unknown_tool"),
    "tool without a name": ("", {}, "unknown_tool"),
    "tool with a wild name": ("\ud800\0‮" * 200, {}, "unknown_tool"),
    "null": ("collab_read", None, "invalid_arguments"),
    "number": ("collab_read", 7, "invalid_arguments"),
    "list": ("collab_read", [{"filepath": "x"}], "invalid_arguments"),
    "JSON list": ("collab_read", '[{"filepath": "x"}]', "invalid_arguments"),
    "JSON null": ("collab_read", "null", "invalid_arguments"),
    "JSON text": ("collab_read", '"filepath"', "invalid_arguments"),
    "no JSON": ("collab_read", "filepath=x", "invalid_arguments"),
    "empty JSON": ("collab_read", "", "invalid_arguments"),
    "JSON cut short": ("collab_read", '{"filepath": "x', "invalid_arguments"),
    "JSON and more": ("collab_read", '{"filepath": "x"} {"filepath": "y"}', "invalid_arguments"),
    "JSON deeper than the stack": ("collab_read", '{"filepath": ' + "[" * 200_000, "invalid_arguments"),
    "JSON with an endless number": ("collab_read", '{"version": ' + "9" * 10_000 + "}", "invalid_arguments"),
    "JSON with a lone surrogate": ("collab_read", '{"filepath": "\\ud800"}', "invalid_arguments"),
    "missing": ("collab_write", {"filepath": "x", "content": "x"}, "invalid_arguments"),
    "more than asked for": ("collab_read", {"filepath": "x", "agent_id": "bob"}, "invalid_arguments"),
    "an identity": (
        "save_to_my_workspace",
        {"filename": "x", "content": "x", "agent_id": "bob"},
        "invalid_arguments",
    ),
    "a surrogate as a name": ("collab_list", {"\udfff": 1}, "invalid_arguments"),
    "null for text": ("save_to_my_workspace", {"filename": "x", "content": None}, "invalid_arguments"),
    "number for text": ("save_to_my_workspace", {"filename": "x", "content": 1}, "invalid_arguments"),
    "list for text": ("save_to_my_workspace", {"filename": ["x"], "content": "x"}, "invalid_arguments"),
    "nested": ("save_to_my_workspace", {"filename": {"a": [{"b": {}}]}, "content": "x"}, "invalid_arguments"),
    "text for number": ("collab_read", {"filepath": "x", "version": "newest"}, "invalid_arguments"),
    "fraction": ("collab_read", {"filepath": "x", "version": 1.5}, "invalid_arguments"),
    "not a number": ("collab_read", {"filepath": "x", "version": float("nan")}, "invalid_arguments"),
    "infinity": ("collab_read", {"filepath": "x", "version": float("inf")}, "invalid_arguments"),
    "version 0": ("collab_read", {"filepath": "x", "version": 0}, "invalid_arguments"),
    "version below unchecked": (
        "collab_write",
        {"filepath": "x", "content": "x", "message": "m", "expected_version": -2},
        "invalid_arguments",
    ),
    "long message": (
        "collab_write",
        {"filepath": "x", "content": "x", "message": "m" * 2001},
        "invalid_arguments",
    ),
    "surrogate in content": (
        "save_to_my_workspace",
        {"filename": "x", "content": "a\ud800"},
        "not_text",
    ),
    "surrogate in message": (
        "handoff_file",
        {"to_agent": "bob", "filename": "x", "content": "x", "message": "\udc80"},
        "invalid_arguments",
    ),
    "NUL in content": ("save_to_my_workspace", {"filename": "x", "content": "a\0b"}, "not_text"),
    "NUL in shared content": ("collab_write", {"filepath": "x", "content": "\0", "message": "m"}, "not_text"),
    "unknown receiver": (
        "handoff_file",
        {"to_agent": "zed", "filename": "x", "content": "x", "message": "m"},
        "unknown_agent",
    ),
    "receiver that is a path": (
        "handoff_file",
        {"to_agent": "../alice", "filename": "x", "content": "x", "message": "m"},
        "invalid_agent_id",
    ),
    "owner that is a path": (
        "read_from_workspace",
        {"agent_id": "../handoff", "filename": "x"},
        "invalid_agent_id",
    ),
    "unknown owner": ("list_workspace_files", {"agent_id": "zed"}, "unknown_agent"),
    "owner that is the control folder": (
        "list_workspace_files",
        {"agent_id": ".watchroom"},
        "invalid_agent_id",
    ),
    "unknown sender": ("read_handoff", {"from_agent": "zed", "filename": "x"}, "unknown_agent"),
}

PATH_CALLS: Final[dict[str, Callable[[str], dict[str, Json]]]] = {
    "save_to_my_workspace": lambda path: {"filename": path, "content": "x"},
    "read_from_workspace": lambda path: {"agent_id": "bob", "filename": path},
    "delete_from_my_workspace": lambda path: {"filename": path},
    "handoff_file": lambda path: {"to_agent": "bob", "filename": path, "content": "x", "message": "m"},
    "read_handoff": lambda path: {"from_agent": "bob", "filename": path},
    "acknowledge_handoff": lambda path: {"from_agent": "bob", "filename": path},
    "collab_write": lambda path: {"filepath": path, "content": "x", "message": "m"},
    "collab_read": lambda path: {"filepath": path},
    "collab_history": lambda path: {"filepath": path},
    "collab_rollback": lambda path: {"filepath": path, "to_version": 1},
}


@pytest.fixture
def settled(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> Workspace:
    """A workspace in which something is at stake in every zone."""
    for toolbox in (alice, bob):
        ok(toolbox, "save_to_my_workspace", filename="notes.md", content="mine")
    ok(bob, "handoff_file", to_agent="alice", filename="data.csv", content="1,2", message="m")
    ok(bob, "collab_write", filepath="plan.md", content="plan", message="m")
    return workspace


def refused_without_a_trace(
    workspace: Workspace, root: Path, tool: str, arguments: Any, language: Language = "en"
) -> dict[str, Any]:
    """Call as alice: the refusal says what it must, is the one new row, and the tree is as before."""
    before, seen = snapshot(root), workspace.journal.last_seq()
    toolbox = workspace.tools("alice", language=language)
    result: dict[str, Any] = toolbox.dispatch_tool_call(tool, arguments)
    assert result["success"] is False, result
    assert all(isinstance(result[key], str) and result[key] for key in ("error", "message", "suggestion"))
    json.dumps(result).encode()
    "".join(result[key] for key in ("error", "message", "suggestion")).encode()
    workspace.flush()
    (row,) = all_rows(workspace.journal, after=seen)
    assert (row.actor, row.error) == ("alice", result["error"])
    assert row.outcome in ("denied", "failed")
    assert row.version is None
    assert snapshot(root) == before
    return result


@pytest.mark.parametrize("tool", PATH_CALLS)
def test_paths_in_disguise_are_refused_by_every_tool(settled: Workspace, root: Path, tool: str) -> None:
    not_refused = {}
    for disguise, path in BAD_PATHS.items():
        before, seen = snapshot(root), settled.journal.last_seq()
        result = settled.tools("alice").dispatch_tool_call(tool, PATH_CALLS[tool](path))
        settled.flush()
        rows = all_rows(settled.journal, after=seen)
        if result.get("error") != "invalid_path" or [row.error for row in rows] != ["invalid_path"]:
            not_refused[disguise] = result
        elif snapshot(root) != before:
            not_refused[disguise] = {"changed": "the tree"}
    assert not_refused == {}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS)
def test_a_refused_path_is_explained_and_changes_nothing(settled: Workspace, root: Path, path: str) -> None:
    arguments = {"filename": path, "content": "x"}
    for language in LANGUAGES:
        result = refused_without_a_trace(settled, root, "save_to_my_workspace", arguments, language)
        assert result["error"] == "invalid_path"
        assert all(character.isprintable() or character == "\n" for character in result["message"])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("tool", "arguments", "error"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_is_explained_and_changes_nothing(
    settled: Workspace, root: Path, tool: str, arguments: Any, error: str, language: Language
) -> None:
    assert refused_without_a_trace(settled, root, tool, arguments, language)["error"] == error


@pytest.mark.parametrize(
    ("tool", "arguments", "most"),
    [
        ("send_message", {"to_agent": "alice", "content": "x" * 100_001}, "100,000"),
        ("pause_agent", {"agent_id": "x" * 2001}, "2,000"),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_is_too_long_is_told_how_long_it_may_be(
    workspace: Workspace, tool: str, arguments: dict[str, object], most: str, language: Language
) -> None:
    person = workspace.tools_for_human("dana", language=language)
    assert f" {most} " in refused(person, tool, **arguments)["message"]


@pytest.mark.parametrize("number", [2**63, 10**30])
@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("collab_read", "version"),
        ("collab_rollback", "to_version"),
        ("collab_write", "expected_version"),
    ],
)
def test_a_version_beyond_all_versions_is_refused(
    settled: Workspace, root: Path, tool: str, argument: str, number: int
) -> None:
    arguments = {**PATH_CALLS[tool]("plan.md"), argument: number}
    settled.tools("alice").dispatch_tool_call("collab_read", {"filepath": "plan.md"})
    before = snapshot(root)
    assert refused(settled.tools("alice"), tool, **arguments)
    assert snapshot(root) == before


def test_a_limit_beyond_all_versions_gives_them_all(settled: Workspace, alice: Toolbox) -> None:
    assert ok(alice, "collab_history", filepath="plan.md", limit=10**30)["count"] == 1


@pytest.mark.parametrize("content", ["x" * (MAX_TEXT_BYTES + 1), "文" * (MAX_TEXT_BYTES // 3 + 1)], ids=len)
@pytest.mark.parametrize("tool", ["save_to_my_workspace", "handoff_file", "collab_write"])
def test_a_text_over_the_limit_is_refused(settled: Workspace, root: Path, tool: str, content: str) -> None:
    arguments = {**PATH_CALLS[tool]("large.md"), "content": content}
    assert refused_without_a_trace(settled, root, tool, arguments)["error"] == "too_large"


def test_a_text_at_the_limit_is_taken(settled: Workspace, root: Path, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="large.md", content="x" * MAX_TEXT_BYTES)
    assert (root / "agents/alice/large.md").stat().st_size == MAX_TEXT_BYTES


def test_metadata_of_a_handoff_cannot_be_pushed_aside(settled: Workspace, root: Path, alice: Toolbox) -> None:
    """Neither a file nor a folder may stand where the metadata of another delivery belongs."""
    for filename in ("x.meta.json", "x.META.json", "x.meta.json/y"):
        arguments = PATH_CALLS["handoff_file"](filename)
        refused_without_a_trace(settled, root, "handoff_file", arguments)
    ok(alice, "handoff_file", to_agent="bob", filename="x", content="x", message="m")
    assert settled.verify() == []


@pytest.fixture
def elsewhere(tmp_path: Path, settled: Workspace) -> Path:
    """A folder outside of the workspace that holds a secret."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret.md").write_text("secret")
    return folder


def test_nothing_is_read_through_a_symlink(settled: Workspace, root: Path, elsewhere: Path) -> None:
    (root / "agents/alice/link").symlink_to(elsewhere)
    (root / "agents/alice/link.md").symlink_to(elsewhere / "secret.md")
    for agent in ("alice", "bob"):
        toolbox = settled.tools(agent)
        for filename in ("link/secret.md", "link.md", "link"):
            result = refused(toolbox, "read_from_workspace", agent_id="alice", filename=filename)
            assert "secret" not in json.dumps(result).replace("link/secret.md", "")
        assert ok(toolbox, "list_workspace_files", agent_id="alice")["files"] == ["notes.md"]
    settled.scan()
    assert "secret" not in {settled.journal.content(row.seq) for row in all_rows(settled.journal)}


@pytest.mark.parametrize("filename", ["link/new.md", "link/secret.md", "link.md", "link"])
@pytest.mark.parametrize("tool", ["save_to_my_workspace", "delete_from_my_workspace"])
def test_nothing_is_written_through_a_symlink(
    settled: Workspace, root: Path, elsewhere: Path, tool: str, filename: str
) -> None:
    (root / "agents/alice/link").symlink_to(elsewhere)
    (root / "agents/alice/link.md").symlink_to(elsewhere / "secret.md")
    before = snapshot(root)
    refused(settled.tools("alice"), tool, **PATH_CALLS[tool](filename))
    assert {file.name: file.read_text() for file in elsewhere.iterdir()} == {"secret.md": "secret"}
    assert snapshot(root) == before


def test_an_own_zone_that_was_swapped_for_a_symlink_leads_nowhere(
    settled: Workspace, root: Path, elsewhere: Path, alice: Toolbox
) -> None:
    """Between two calls: what was a folder at the first is a link at the second."""
    ok(alice, "save_to_my_workspace", filename="folder/a.md", content="a")
    shutil.rmtree(root / "agents/alice/folder")
    (root / "agents/alice/folder").symlink_to(elsewhere)
    refused(alice, "read_from_workspace", agent_id="alice", filename="folder/secret.md")
    refused(alice, "save_to_my_workspace", filename="folder/a.md", content="b")
    (root / "agents/bob/notes.md").unlink()
    (root / "agents/bob").rmdir()
    (root / "agents/bob").symlink_to(elsewhere)
    refused(alice, "read_from_workspace", agent_id="bob", filename="secret.md")
    assert ok(alice, "list_workspace_files", agent_id="bob")["files"] == []
    assert [file.name for file in elsewhere.iterdir()] == ["secret.md"]


@pytest.mark.parametrize("place", ["collaborative/current", "collaborative/.versions", "handoff"])
def test_shared_zones_behind_a_symlink_are_kept_in_the_journal_only(
    settled: Workspace, root: Path, elsewhere: Path, alice: Toolbox, place: str
) -> None:
    """Their files are mere views: the write counts, the view is missing, nothing lands elsewhere."""
    shutil.rmtree(root / place)
    (root / place).symlink_to(elsewhere)
    ok(alice, "collab_write", filepath="new.md", content="x", message="m")
    ok(alice, "handoff_file", to_agent="bob", filename="new.md", content="x", message="m")
    assert ok(alice, "collab_read", filepath="new.md")["content"] == "x"
    assert [file.name for file in elsewhere.iterdir()] == ["secret.md"]
    (root / place).unlink()
    settled.repair()
    assert settled.verify() == []


@pytest.fixture(params=["pipe", "folder", "socket"])
def obstacle(request: pytest.FixtureRequest, root: Path, settled: Workspace) -> Iterator[str]:
    """The name of something in alice's workspace that is not a file."""
    path = root / "agents/alice/notes.md"
    path.unlink()
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
        (path / "inside.md").write_text("inside")
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as listening:
            here = os.getcwd()
            os.chdir(path.parent)
            listening.bind(path.name)
            os.chdir(here)
            yield path.name
            return
    yield path.name


@pytest.mark.parametrize("tool", ["read_from_workspace", "save_to_my_workspace", "delete_from_my_workspace"])
def test_what_is_no_file_is_neither_read_nor_replaced_nor_waited_for(
    settled: Workspace, root: Path, tool: str, obstacle: str
) -> None:
    before = snapshot(root)
    arguments = {**PATH_CALLS[tool](obstacle), **({"agent_id": "alice"} if "read" in tool else {})}
    refused(settled.tools("alice"), tool, **arguments)
    assert snapshot(root) == before
    settled.scan()
    assert snapshot(root) == before


def test_reading_what_is_no_file_uses_nothing_up(settled: Workspace, root: Path, alice: Toolbox) -> None:
    (root / "agents/alice/folder").mkdir()
    refused(alice, "read_from_workspace", agent_id="alice", filename="folder")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        refused(alice, "read_from_workspace", agent_id="alice", filename="folder")
    assert len(os.listdir("/proc/self/fd")) == before


VALID_IDS: Final = ("a", "0", "alice", "agent-1", "agent_1", "a" * 64, "to_", "a_to", "x_too")
INVALID_IDS: Final = (
    *("", "A", "Alice", "-a", "_a", ".a", "a.b", "a b", "a/b", "..", "a\\b", "a" * 65, "é", "ａ", "а", "١"),
    *(
        "alice\n",
        "alice\0",
        "a_to_b",
        "_to_",
        "outside",
        "system",
        "human",
        "user",
        "human:eve",
        "con",
        "com1",
    ),
    *("\ud800", "alice ", " alice", "a\u200b"),
)


@pytest.mark.parametrize("agent", VALID_IDS)
def test_a_valid_agent_id_is_registered(root: Path, agent: str) -> None:
    with Workspace.open(root, agents=[agent]) as workspace:
        ok(workspace.tools(agent), "save_to_my_workspace", filename="x", content="x")
    assert (root / "agents" / agent / "x").read_text() == "x"


@pytest.mark.parametrize("agent", INVALID_IDS, ids=ascii)
def test_an_invalid_agent_id_is_refused(root: Path, agent: str) -> None:
    Workspace.open(root, agents=["alice"]).close()
    before = snapshot(root)
    with pytest.raises(InvalidAgentId) as refusal:
        Workspace.open(root, agents=[agent])
    assert all(refusal.value.message(language) for language in LANGUAGES)
    with Workspace.open(root) as workspace:
        with pytest.raises(InvalidAgentId):
            workspace.tools(agent)
        assert list(workspace.config.agents) == ["alice"]
        assert workspace.verify() == []
    assert snapshot(root) == before


def test_a_toolbox_is_for_registered_agents_only(workspace: Workspace) -> None:
    with pytest.raises(UnknownAgent):
        workspace.tools("zed")


def test_a_draft_that_cannot_be_stored_takes_no_other_with_it(workspace: Workspace) -> None:
    """A program that uses the zones directly may pass what the toolbox would have refused."""
    together = Barrier(8)

    def write(thread: int) -> list[str]:
        failures = []
        for n in range(20):
            together.wait()
            message = "\ud800" if thread == 0 else "m"
            try:
                workspace.private.write("alice", "alice", f"{thread}.md", str(n), tool="t", message=message)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach the innocent
                failures.append(repr(error))
        return failures

    with ThreadPoolExecutor(8) as pool:
        guilty, *innocent = pool.map(write, range(8))
    assert len(guilty) == 20
    assert innocent == [[]] * 7


def test_a_workspace_may_be_closed_twice(root: Path) -> None:
    workspace = Workspace.open(root, agents=["alice"])
    workspace.close()
    workspace.close()


json_values: st.SearchStrategy[Json] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=2**62),
        st.floats(),
        st.text(),
        st.sampled_from(["plan.md", "notes.md", "alice", "bob", "data.csv", "..", "\0", "\ud800"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
argument_names = sorted({name for tool in TOOLS.values() for name in tool.takes.model_fields})
wild_arguments = st.dictionaries(
    st.sampled_from(argument_names) | st.text(max_size=5), json_values, max_size=5
)


@st.composite
def nearly_right_arguments(draw: st.DrawFn) -> tuple[str, dict[str, Json]]:
    """A tool with the arguments that it takes, most of them sensible, any of them wild."""
    tool = draw(st.sampled_from(sorted(TOOLS)))
    sensible: dict[str, list[Json]] = {
        "agent_id": ["alice", "bob"],
        "to_agent": ["bob"],
        "from_agent": ["bob"],
        "version": [1, 2],
        "to_version": [1, 2],
        "expected_version": [-1, 0, 1],
        "limit": [1, 5],
        "include_acknowledged": [True, False],
    }
    arguments = {
        name: draw(st.sampled_from(sensible.get(name, ["plan.md", "notes.md", "data.csv"])) | json_values)
        for name in TOOLS[tool].takes.model_fields
    }
    return tool, arguments


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("fuzz") / "team"
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        bob = workspace.tools("bob")
        ok(bob, "collab_write", filepath="plan.md", content="x", message="m")
        ok(bob, "handoff_file", to_agent="alice", filename="data.csv", content="1", message="m")
        yield workspace
        assert workspace.verify() == []


fuzzing = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def _check_answer(workspace: Workspace, tool: str, arguments: Any) -> None:
    result = workspace.tools("alice").dispatch_tool_call(tool, arguments)
    json.dumps(result, allow_nan=False)
    if result["success"] is not True:
        assert all(isinstance(result[key], str) and result[key] for key in ("error", "message", "suggestion"))


@fuzzing
@given(tool=st.sampled_from(sorted(TOOLS)) | st.text(max_size=20), arguments=wild_arguments)
def test_wild_calls_are_answered(fuzzed: Workspace, tool: str, arguments: dict[str, Json]) -> None:
    _check_answer(fuzzed, tool, arguments)


@fuzzing
@given(call=nearly_right_arguments())
def test_nearly_right_calls_are_answered(fuzzed: Workspace, call: tuple[str, dict[str, Json]]) -> None:
    _check_answer(fuzzed, *call)


@fuzzing
@given(tool=st.sampled_from(sorted(TOOLS)), arguments=st.text() | json_values.map(json.dumps))
@example(tool="collab_list", arguments="{}")
def test_texts_in_place_of_arguments_are_answered(fuzzed: Workspace, tool: str, arguments: str) -> None:
    _check_answer(fuzzed, tool, arguments)


@pytest.mark.parametrize("arguments", ['{"filename": "long.md", "content": "hours of wo', "[1]", "nothing"])
def test_the_text_of_a_call_that_is_no_object_is_kept(workspace: Workspace, arguments: str) -> None:
    """A model's answer that was cut off is all that is left of its work."""
    alice = workspace.tools("alice")
    assert alice.dispatch_tool_call("save_to_my_workspace", arguments)["error"] == "invalid_arguments"
    workspace.flush()
    (row,) = all_rows(workspace.journal, after=workspace.journal.last_seq() - 1)
    assert workspace.journal.content(row.seq) == arguments
