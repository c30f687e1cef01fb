"""``watchroom report``: work, decisions and open needs between two moments. Texts of agents are never
markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from calls import ok, refused
from cli.running import Captured, printed, printed_json, row_of
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from watchroom import Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.kernel.call_context import CallContext
from watchroom_tui.formatters.report_formats import as_markdown
from watchroom_tui.formatters.report_page import PageTable, Quoted, ReportPage

HOSTILE = '<img src=x onerror=a()>|`**b**`|\\| [x](http://e.example) & "q" \x1b[31m'


@pytest.fixture
def reported(root: Path, workspace: Workspace) -> tuple[str, int]:
    """A workspace, and the row after which alice wrote twice, bob wrote once and once too late, a person
    settled that, and alice left a file for bob."""
    alice, bob, eve = workspace.tools("alice"), workspace.tools("bob"), workspace.tools_for_human("eve")
    ok(alice, "collab_write", filepath="plan.md", content="a\n", message="m")
    since = workspace.journal.last_seq()
    ok(alice, "collab_write", filepath="plan.md", content="b\n", message="m", expected_version=1)
    late = refused(bob, "collab_write", filepath="plan.md", content="c", message=HOSTILE, expected_version=1)
    ok(alice, "save_to_my_workspace", filename="x_(1)_`*.md", content="x\n")
    ok(eve, "dismiss_conflict", conflict=late["conflict_id"], message=HOSTILE)
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message=HOSTILE)
    workspace.close()
    return str(root), since


def test_a_report_has_work_decisions_and_open_needs(capsys: Captured, reported: tuple[str, int]) -> None:
    team, since = reported
    found = printed_json(capsys, "report", team, "--from", str(since), "--format", "json")
    counted = {each["actor"]: (each["versions"], each["paths"], each["refused"]) for each in found["actors"]}
    assert counted == {"alice": (3, 3, 0), "bob": (0, 0, 1)}
    assert {(each["path"], each["added"], each["removed"]) for each in found["paths"]} == {
        ("plan.md", 1, 1),
        ("alice/x_(1)_`*.md", 1, 0),
        ("alice_to_bob/raw.md", 1, 0),
    }
    assert [(each["row"]["actor"], each["row"]["tool"]) for each in found["decisions"]] == [
        ("human:eve", "dismiss_conflict")
    ]
    assert [row["actor"] for row in found["refused"]] == ["bob"]
    assert [need["kind"] for need in found["open"]] == ["handoff"]


def test_a_report_excludes_rows_before_and_after_its_range(
    capsys: Captured, reported: tuple[str, int]
) -> None:
    team, since = reported
    late = row_of(capsys, team, "collab_write", 2)["seq"]
    found = printed_json(capsys, "report", team, "--from", str(since), "--to", str(late), "--format", "json")
    assert [each["path"] for each in found["paths"]] == ["plan.md"]
    assert (found["decisions"], [need["kind"] for need in found["open"]]) == ([], ["conflict"])


def test_a_report_has_reverts(capsys: Captured, reported: tuple[str, int]) -> None:
    team, since = reported
    with Workspace.open(team, create=False, scan=False) as workspace:
        last = workspace.journal.last_seq()
        workspace.reverts.apply(
            CallContext("human:eve"), RevertSelection(("alice",), after=since), message=HOSTILE
        )
    (revert,) = printed_json(capsys, "report", team, "--from", str(last), "--format", "json")["reverts"]
    assert (revert["row"]["actor"], revert["agents"]) == ("human:eve", ["alice"])
    assert ["collab", "plan.md", 3] in revert["written"]
    page = printed(capsys, "report", team, "--from", str(last), "--format", "html")
    assert "human:eve" in page
    assert "<img" not in page


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_texts_of_agents_are_not_markup_in_html(capsys: Captured, reported: tuple[str, int]) -> None:
    team, _ = reported
    page = _Tags()
    page.feed(printed(capsys, "report", team, "--format", "html"))
    assert not page.seen & {"img", "a", "script", "b", "link", "iframe"}
    assert HOSTILE.replace("\x1b", "␛") in page.text


def test_texts_of_agents_are_not_markup_in_markdown(capsys: Captured, reported: tuple[str, int]) -> None:
    team, _ = reported
    text = printed(capsys, "report", team)
    page = _Tags()
    page.feed(MarkdownIt("commonmark").enable("table").render(text))
    assert not page.seen & {"img", "a", "em", "strong"}
    assert HOSTILE.replace("\x1b", "␛").replace("\\|", "\\ |") in page.text
    assert "alice/x_(1)_`*.md" in page.text
    tables = [line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")]
    assert set(tables) == {5, 6, 7, 10}, "no cell is split"


@given(st.text(st.sampled_from(" ab1.)(-+=#>*_~`|\\\\$&;!<[]{}/:\"'"), min_size=1, max_size=20))
@example("+3 −2, $1.20 (now)!")
def test_no_text_of_a_page_is_markup_in_markdown(text: str) -> None:
    table = PageTable(text, (text, "x"), ((text, Quoted(text)),), text)
    page = as_markdown(ReportPage(text, (text,), (table,)))
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    places = [each for each in tokens if each.type == "inline"]
    assert {each.tag for each in tokens} <= {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", ""}
    assert len(places) == 8
    told = " ".join(text.split())
    quoted = [child for each in places for child in each.children or () if child.type != "text"]
    assert [each.type for each in quoted] == (["code_inline"] if told else [])
    shown = ["".join(child.content for child in each.children or ()) for each in places]
    assert [*shown[:4], shown[5], shown[7]] == [told, told, told, told, told, told]


def test_counts_and_costs_stand_in_markdown_as_they_are() -> None:
    page = as_markdown(ReportPage("t", ("lines +3 -2, {x} (for $1.20)!",), ()))
    assert page == "# t\n\nlines +3 -2, {x} (for $1.20)!\n"
