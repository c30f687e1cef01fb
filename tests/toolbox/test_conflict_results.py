"""A losing agent learns what it missed, and at its next reading what a person has decided."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from calls import ok, refused
from projections.folding import PLAN, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.features.conflicts.reads import MAX_DIFF_CHARACTERS
from watchroom.model import DISMISS, Note


def missed(loser: Toolbox, base: int) -> str | None:
    result = refused(loser, "collab_write", filepath=PLAN, content="mine", message="m", expected_version=base)
    changes: str | None = result["missed_changes"]
    return changes


def patched(folder: Path, text: str, diff: str) -> str:
    """The text after ``git apply`` of the diff."""
    file = folder / "plan.md"
    file.write_bytes(text.encode())
    _, _, *hunks = diff.split("\n")
    patch = "\n".join(["--- a/plan.md", "+++ b/plan.md", *hunks])
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=folder, input=patch.encode(), check=True)
    return file.read_bytes().decode()


def overwrite(toolbox: Toolbox, *texts: str) -> None:
    for text in texts:
        ok(toolbox, "collab_write", filepath=PLAN, content=text, message="m")


def test_a_change_of_all_line_ends_is_told_apart_from_the_lines(alice: Toolbox, bob: Toolbox) -> None:
    lines = [f"line {number}" for number in range(100)]
    overwrite(alice, "\ufeff" + "\r\n".join(lines), "\n".join([*lines[:50], "new", *lines[50:], ""]))
    told, diff = (missed(bob, 1) or "").split("\n", 1)
    assert told == (
        "The file style changed from CRLF, no final newline, byte order mark to LF. Other changes:"
    )
    assert [line for line in diff.split("\n")[2:] if line[:1] in "+-" and line] == ["+new"]


@pytest.mark.parametrize(
    ("base", "current"),
    [
        ("一\n二\n三\n", "一\n贰\n三\n四\n"),
        ("one\r\ntwo\r\nthree\r\n", "one\r\n2\r\nthree\r\n"),
        ("one\ntwo", "one\ntwo\n"),
        ("one\ntwo\n", "one\n2"),
        ("no end", "another, without end"),
        ("", "now there is text\n"),
        ("there was text\n", ""),
        ("a\x0bb\u2028c\n", "a\x0bB\u2028c\n"),
        ("".join(f"{n}\n" for n in range(60)), "".join(f"{n + (n % 20 == 0)}\n" for n in range(60))),
        ("-- old\n", "++ new\n@@ not a hunk\n"),
    ],
    ids=[
        *("chinese", "crlf", "end added", "end lost", "no end", "from empty", "to empty"),
        *("odd separators", "several places", "like a diff"),
    ],
)
def test_what_was_missed_leads_from_the_base_to_the_current_text(
    tmp_path: Path, alice: Toolbox, bob: Toolbox, base: str, current: str
) -> None:
    overwrite(alice, "draft", base, "in between\n", current)
    diff = missed(bob, 2)
    assert diff is not None
    assert diff.startswith("--- plan.md (v2, alice)\n+++ plan.md (v4, alice)\n@@ ")
    assert patched(tmp_path, base, diff) == current


def test_a_file_that_came_back_to_its_old_text_has_no_changes(alice: Toolbox, bob: Toolbox) -> None:
    for version, text in enumerate(("one", "two", "one")):
        write(alice, text, version)
    assert missed(bob, 1) == ""


def test_without_a_base_there_is_nothing_to_compare(alice: Toolbox, bob: Toolbox) -> None:
    assert missed(bob, 3) is None, "nothing stands"
    write(alice, "one", 0)
    assert missed(bob, 0) is None, "it started from nothing"
    assert missed(bob, 9) is None, "it started from a version that never was"


@pytest.mark.parametrize(("language", "said"), [("en", "cut: "), ("zh", "已截断")])
def test_a_long_diff_is_cut_at_a_line_and_says_so(
    workspace: Workspace, alice: Toolbox, language: str, said: str
) -> None:
    bob = workspace.tools("bob", language=language)  # type: ignore[arg-type]
    old, new = ("".join(f"{word} {n} 行\n" for n in range(9000)) for word in ("第", "新"))
    overwrite(alice, old, new)
    diff = missed(bob, 1)
    assert diff is not None
    *kept, last = diff.split("\n")
    assert said in last
    assert MAX_DIFF_CHARACTERS - 20 < len("\n".join(kept)) <= MAX_DIFF_CHARACTERS
    assert all(line.startswith(("-第", "+新")) for line in kept[3:])


def test_one_long_line_is_cut_too(alice: Toolbox, bob: Toolbox) -> None:
    overwrite(alice, "a" * 50_000, "b" * 50_000)
    diff = missed(bob, 1)
    assert diff is not None
    assert len(diff) < MAX_DIFF_CHARACTERS + 200
    assert "cut: " in diff.split("\n")[-1]


def test_the_refusal_carries_the_message_of_what_stands(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one", 0)
    ok(alice, "collab_write", filepath=PLAN, content="two", message="the plan for May", expected_version=1)
    result = refused(bob, "collab_write", filepath=PLAN, content="mine", message="m", expected_version=1)
    assert result["current_message"] == "the plan for May"
    assert "missed_changes" in result["suggestion"]


# What a person decided


@pytest.fixture
def dana(workspace: Workspace) -> Toolbox:
    return workspace.tools_for_human("dana")


@pytest.fixture
def conflict(alice: Toolbox, bob: Toolbox) -> int:
    write(alice, "one", 0)
    write(alice, "two", 1)
    return stale_write(bob, 1)


def resolve(person: Toolbox, expected: int, *numbers: int, message: str = "took both") -> None:
    ok(
        person,
        "resolve_conflict",
        filepath=PLAN,
        content="both",
        message=message,
        expected_version=expected,
        conflicts=list(numbers),
    )


def notice(reader: Toolbox) -> str | None:
    told: str | None = ok(reader, "collab_read", filepath=PLAN).get("notice")
    return told


def test_an_agent_is_told_once_of_a_resolution(
    alice: Toolbox, bob: Toolbox, dana: Toolbox, conflict: int
) -> None:
    resolve(dana, 2, conflict)
    assert notice(alice) is None, "it was not hers"
    told = notice(bob)
    assert told is not None
    for word in ("human:dana", PLAN, "version 3", "took both"):
        assert word in told
    assert notice(bob) is None


def test_an_agent_is_told_of_a_dismissal(bob: Toolbox, dana: Toolbox, conflict: int) -> None:
    ok(dana, "dismiss_conflict", conflict=conflict, message="not this year")
    told = notice(bob)
    assert told is not None
    for word in ("human:dana", "dismissed", "version 2", "not this year"):
        assert word in told
    assert notice(bob) is None


def test_the_notice_speaks_the_agents_language(workspace: Workspace, dana: Toolbox, conflict: int) -> None:
    resolve(dana, 2, conflict, message="")
    assert notice(workspace.tools("bob", language="zh")) == (
        "human:dana 已在版本 3 中解决你在 'plan.md' 上的冲突。"
    )


def test_an_agent_that_read_or_wrote_since_is_not_told(bob: Toolbox, dana: Toolbox, conflict: int) -> None:
    resolve(dana, 2, conflict)
    write(bob, "on from there", 3)
    assert notice(bob) is None
    again = stale_write(bob, 1)
    ok(dana, "dismiss_conflict", conflict=again)
    ok(bob, "collab_read", filepath=PLAN, version=1)
    assert notice(bob) is None, "the reading of an old version told it"


def test_a_refused_write_is_not_being_told(bob: Toolbox, dana: Toolbox, conflict: int) -> None:
    resolve(dana, 2, conflict)
    stale_write(bob, 1)
    assert notice(bob) is not None


def test_several_decisions_are_told_in_their_order(bob: Toolbox, dana: Toolbox, conflict: int) -> None:
    resolve(dana, 2, conflict)
    ok(dana, "dismiss_conflict", conflict=stale_write(bob, 1))
    told = notice(bob)
    assert told is not None
    first, second = told.split("\n")
    assert ("version 3" in first, "dismissed" in second) == (True, True)


def test_the_notice_waits_for_an_agent_that_comes_back_in_another_process(
    root: Path, workspace: Workspace, dana: Toolbox, conflict: int
) -> None:
    resolve(dana, 2, conflict)
    workspace.close()
    with Workspace.open(root) as next_day:
        assert notice(next_day.tools("bob")) is not None
    with Workspace.open(root) as the_day_after:
        assert notice(the_day_after.tools("bob")) is None


def test_nobody_is_told_of_an_edit_that_was_reverted(
    root: Path, workspace: Workspace, alice: Toolbox, dana: Toolbox
) -> None:
    write(alice, "one", 0)
    (root / "collaborative/current" / PLAN).write_text("by hand", encoding="utf-8")
    workspace.scan()
    ok(dana, "revert_outside_edit", filepath=PLAN)
    assert notice(alice) is None


@pytest.mark.parametrize("number", [1, 10**6, 2**70, -1, True])
def test_a_settlement_that_names_no_conflict_is_not_reported_and_the_file_can_be_read(
    workspace: Workspace, alice: Toolbox, number: int
) -> None:
    write(alice, "a", 0)
    workspace.journal.append(
        [Note("human:eve", DISMISS, "collab", PLAN, base=1, detail={"conflict": number})]
    )
    found = ok(alice, "collab_read", filepath=PLAN)
    assert (found["version"], "notice" in found) == (1, False)
    assert workspace.notifications.fetch("alice") == []
