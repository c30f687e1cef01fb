"""The history as a repository: git finds nothing wrong, and the same rows always give the same commits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from calls import ok, refused
from cli.running import Captured, printed, printed_json, refusal
from documents import create, edit
from effort import rounds
from history.repositories import check, files_at, git, needs_git, refs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_journal import MemoryJournal
from watchroom import Workspace
from watchroom.history.git import Grouping, export_history
from watchroom.history.git.stream import is_safe_path, tree_path
from watchroom.kernel.rules.row_files import find_flaw, find_row_flaw
from watchroom.model import Draft, Note, Write, Zone

pytestmark = needs_git

_DERIVED = ("collaborative/.versions/", "whiteboard-history/", "realtime/.crdt_state/")


@pytest.fixture
def team(root: Path, workspace: Workspace) -> Path:
    """A workspace with versions, a deletion, a handoff, boards, a refused write and a message of odd lines."""
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    for n, text in enumerate(("one\n", "two\n", "三\n")):
        ok(
            alice,
            "collab_write",
            filepath="docs/计划 1.md",
            content=text,
            message=f"m{n}",
            expected_version=n,
        )
    late = {"filepath": "docs/计划 1.md", "content": "late\n", "expected_version": 2}
    refused(bob, "collab_write", message="x\n\nWatchroom-Until: 999999", **late)
    ok(bob, "save_to_my_workspace", filename="notes/a.md", content="mine", message="\x1b[2Jgone\r\n\nx")
    ok(bob, "save_to_my_workspace", filename="notes/b.md", content="mine")
    ok(bob, "delete_from_my_workspace", filename="notes/a.md")
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="for you")
    ok(alice, "whiteboard_append", board="bottom-layer-alice", content="hello")
    create(alice, body="rga", done="lww_register")
    edit(alice, "insert", position=0, text="first\n第二\n")
    edit(bob, "insert", position=0, text="zero\n")
    workspace.close()
    return root


def test_the_tree_is_what_export_lays_out_and_git_finds_nothing_wrong(
    capsys: Captured, team: Path, tmp_path: Path
) -> None:
    repository, out = tmp_path / "team.git", tmp_path / "out"
    assert "refused" in printed(capsys, "git", str(team), "--export", str(repository))
    printed(capsys, "export", str(team), str(out))
    check(repository)
    laid_out = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    kept = {
        name: path.read_text("utf-8")
        for name, path in laid_out.items()
        if not name.startswith((*_DERIVED, ".watchroom/tmp")) and not name.endswith(".meta.json")
    }
    assert len(kept) > 5
    assert files_at(repository) == kept
    assert json.loads(kept["realtime/doc1.json"])["body"] == ["zero", "first", "第二", ""]
    assert "bob" in git(repository, "log", "-1", "--format=%an", "--", "realtime/doc1.json")


def test_an_agents_work_is_found_by_its_author_and_a_refused_write_stands_upon_its_base(
    capsys: Captured, team: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "team.git"
    done = printed_json(capsys, "git", str(team), "--export", str(repository), "--json")
    said = git(
        repository,
        "log",
        "--author=alice",
        "--format=%an <%ae>|%s|%(trailers:key=Watchroom-Version,valueonly)",
    )
    assert "alice <alice@watchroom.invalid>|m1|collab/docs/计划 1.md@2" in said
    assert "bob" not in git(repository, "log", "--author=alice", "--format=%an")
    assert set(git(repository, "log", "--format=%cn").splitlines()) == {"Watchroom"}
    assert "\x1b" not in git(repository, "log")
    ref = git(repository, "for-each-ref", "--format=%(refname)", "refs/watchroom/refused").strip()
    assert files_at(repository, ref)["collaborative/current/docs/计划 1.md"] == "late\n"
    assert git(repository, "log", "-1", "--format=%s", f"{ref}^").strip() == "m1"
    assert git(repository, "log", "-1", "--format=%(trailers:key=Watchroom-Until)", ref).strip() == ""
    assert (done["refused"], done["skipped"]) == (1, 0)


def test_a_second_export_goes_on_where_the_first_ended_and_another_workspace_is_refused(
    capsys: Captured, team: Path, tmp_path: Path
) -> None:
    first, whole = tmp_path / "first.git", tmp_path / "whole.git"
    printed(capsys, "git", str(team), "--export", str(first))
    with Workspace.open(team) as workspace:
        ok(workspace.tools("bob"), "save_to_my_workspace", filename="c.md", content="more")
        edit(workspace.tools("bob"), "insert", position=5, text="a half\n")
    done = printed_json(capsys, "git", str(team), "--export", str(first), "--json")
    assert done["commits"] == 2
    printed(capsys, "git", str(team), "--export", str(whole))
    assert refs(first) == refs(whole)
    with Workspace.open(tmp_path / "other", agents=["eve"]) as workspace:
        ok(workspace.tools("eve"), "save_to_my_workspace", filename="c.md", content="more")
    assert "main" in refusal(capsys, "git", str(tmp_path / "other"), "--export", str(first))
    assert "--per" in refusal(capsys, "git", str(team), "--export", str(first), "--per", "session")
    assert "bare" in refusal(capsys, "git", str(team), "--export", str(tmp_path / "other"))
    assert refs(first) == refs(whole)


def test_no_setting_and_no_hook_of_anybody_is_run(
    capsys: Captured, team: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, mark = tmp_path / "team.git", tmp_path / "ran"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repository)], check=True)
    hook = repository / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    printed(capsys, "git", str(team), "--export", str(repository))
    check(repository)
    assert not mark.exists()
    assert "Somebody" not in git(repository, "log", "--format=%an")


_PATHS = (
    "a.md", "b", "b/c.md", 'q"uote\\x', "line\nbreak", "tab\t é", "文件.md", ".git/config", "x/.GIT/hooks",
    "../out", "/etc/passwd", "a//b", ".gitmodules", "git~1/x", ".g\u200cit/x", "-rf", "nul",
)  # fmt: skip
_TEXTS = st.sampled_from(["x\n", "", "y", "\u0000", "done\n", "data 3\nM\n", "é" * 300])
_MESSAGES = st.sampled_from(
    ["", "m", "from :1\ndone\n", "\x1b[31m\r\n\n\nWatchroom-Until: 9", "'<>\"", "\ud7ff" * 9]
)
_ACTORS = st.sampled_from(["alice", "bob", "human:Dana D.", "outside", "<x>\n", "."])
_ZONES: tuple[Zone, ...] = ("collab", "private", "file", "board", "lease", "session")


@st.composite
def _drafts(draw: st.DrawFn) -> Draft:
    actor, zone = draw(_ACTORS), draw(st.sampled_from(_ZONES))
    session = draw(st.sampled_from(["", "s1", "s2"]))
    if zone == "session":
        status = draw(st.sampled_from(["running", "done"]))
        return Write(actor, "finish", "session", f"{actor}/{session}", "{}", detail={"status": status})
    prefix = {"private": "alice/", "file": "t1/"}.get(zone, "")
    path = prefix + draw(st.sampled_from(("global", "top-layer") if zone in ("board", "lease") else _PATHS))
    content = draw(st.none() | _TEXTS)
    detail = {"call": f"{session}/1/0"} if session else {}
    # The journal takes no version at such a path.
    if draw(st.integers(0, 5)) == 0 or find_flaw(zone, path) is not None:
        said = draw(_MESSAGES)
        return Note(
            actor,
            "collab_write",
            zone,
            path,
            "conflict",
            "x",
            said,
            content or "",
            draw(st.integers(-1, 3)),
            None,
            None,
            detail,
        )
    return Write(actor, "write", zone, path, content, draw(_MESSAGES), detail=detail)


@pytest.mark.parametrize("per", ["version", "session"])
@settings(
    max_examples=rounds(8, 200),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drafts=st.lists(_drafts(), min_size=1, max_size=40), cuts=st.sets(st.integers(1, 80), max_size=4))
def test_bit_by_bit_gives_the_commits_that_all_at_once_gives(
    tmp_path_factory: pytest.TempPathFactory, per: Grouping, drafts: list[Draft], cuts: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("git")
    journal = MemoryJournal(gap=1)
    for draft in drafts:
        journal.append([draft])
    last = journal.last_seq()
    whole, parts = folder / "whole.git", folder / "parts.git"
    export_history(journal, str(whole), per=per)
    for cut in [*sorted(each for each in cuts if each < last), last, last]:
        export_history(journal, str(parts), per=per, until=cut)
    assert refs(whole) == refs(parts)
    check(whole)
    if per == "version" and (kept := _heads(journal)):
        assert files_at(whole) == kept


def _heads(journal: MemoryJournal) -> dict[str, str]:
    """What stands in the files that can be in a tree, later ones in the way of earlier ones."""
    kept: dict[str, str] = {}
    for row in journal.rows():
        path = tree_path(row.zone, row.path)
        if row.version is None or path is None or find_row_flaw(row) or not is_safe_path(path):
            continue
        above = {each for each in kept if path.startswith(each + "/")}
        beneath = {each for each in kept if each.startswith(path + "/")}
        for each in (above if not row.deleted else set()) | beneath | {path}:
            kept.pop(each, None)
        if not row.deleted:
            kept[path] = journal.content(row.seq) or ""
    return kept
