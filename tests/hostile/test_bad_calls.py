"""Bad arguments through the toolbox: refused in words, kept as a row, and without a trace in the tree."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import pytest
from calls import ok, refused
from evidence import all_rows, snapshot
from hostile.calling import PATH_CALLS, refused_without_a_trace
from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext
from watchroom.model import MAX_TEXT_BYTES
from watchroom.texts import LANGUAGES, Language

BAD_CALLS: Final[dict[str, tuple[str, Any, str]]] = {
    "unknown tool": ("run_shell", {"command": "rm -rf /"}, "unknown_tool"),
    "tool without a name": ("", {}, "unknown_tool"),
    "a list for a tool's name": (["collab_read"], {"filepath": "x"}, "unknown_tool"),  # type: ignore[dict-item]
    "a buffer's tool with half a character": ("\ud800_flush", {}, "buffer_not_found"),
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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("tool", "arguments", "error"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_is_explained_and_changes_nothing(
    settled: Workspace, root: Path, tool: str, arguments: Any, error: str, language: Language
) -> None:
    assert refused_without_a_trace(settled, root, tool, arguments, language)["error"] == error


@pytest.mark.parametrize(
    ("tool", "arguments", "most"),
    [
        ("send_message", {"to": "alice", "payload": {"text": "x" * 100_001}}, "100,000"),
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


def test_a_draft_that_cannot_be_stored_takes_no_other_with_it(workspace: Workspace) -> None:
    """A program that uses the zones directly may pass what the toolbox would have refused."""
    together = Barrier(8)

    def write(thread: int) -> list[str]:
        failures = []
        for n in range(20):
            together.wait()
            message = "\ud800" if thread == 0 else "m"
            try:
                workspace.private.write(
                    CallContext("alice", "t"), "alice", f"{thread}.md", str(n), message=message
                )
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


@pytest.mark.parametrize("arguments", ['{"filename": "long.md", "content": "hours of wo', "[1]", "nothing"])
def test_the_text_of_a_call_that_is_no_object_is_kept(workspace: Workspace, arguments: str) -> None:
    """A model's answer that was cut off is all that is left of its work."""
    alice = workspace.tools("alice")
    assert alice.dispatch_tool_call("save_to_my_workspace", arguments)["error"] == "invalid_arguments"
    workspace.flush()
    (row,) = all_rows(workspace.journal, after=workspace.journal.last_seq() - 1)
    assert workspace.journal.content(row.seq) == arguments
