"""A journal file of which something is broken: what is asked is answered all the same, and what is broken named."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from threading import Barrier

import pytest
from journal.disk import meddle
from watchroom.errors import JournalDamaged, JournalError
from watchroom.kernel.journal import SqliteJournal
from watchroom.kernel.journal.protocol import Damage
from watchroom.kernel.journal.sqlite.integrity import find_damage_apart, main
from watchroom.kernel.journal.sqlite.writer import INLINE_BYTES
from watchroom.kernel.journal.topics import outside_edits_of
from watchroom.model import Note, Row, Write

NOT_UTF8 = b"\xffA\xed\xa0\x80"
LARGE = "x" * (INLINE_BYTES + 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A journal with rows of which another question each comes upon the first."""
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal:
        journal.append(
            [
                Write("alice", "t", "collab", "plan.md", "one", message="m"),
                Write("alice", "t", "collab", "plan.md", LARGE, message="m", detail={"call": "c"}),
                Write("bob", "t", "collab", "plan.md", "stale", message="m", expected=0),
                Note("alice", "t", "collab", "plan.md", message="m"),
                Note("alice", "t", "collab", "plan.md", message="m", content="said"),
                Write("alice", "t", "buffer", "alice/plan", "x", message="m"),
                Note("outside", "t", "collab", "plan.md", "conflict", "outside_edit", message="m"),
            ]
        )
    return path


def problems(path: Path) -> list[Damage]:
    with closing(SqliteJournal(path)) as journal:
        return journal.problems()


def test_nothing_is_broken_in_a_whole_journal(file: Path) -> None:
    assert problems(file) == []


@pytest.mark.parametrize("value", [NOT_UTF8, None], ids=["not UTF-8", "UTF-8"])
@pytest.mark.parametrize("column", ["zone", "path", "actor", "tool", "error", "message", "detail"])
def test_a_text_that_cannot_be_read_is_named_with_its_row(
    file: Path, column: str, value: bytes | None
) -> None:
    text = value or b'{"is": "a text"}'
    meddle(file, f"UPDATE rows SET {column} = CAST(? AS TEXT) WHERE seq IN (1, 4)", text)
    place = {"zone": "collab", "path": "plan.md"}
    if column in place:
        place[column] = text.decode(errors="replace")
    named = [
        Damage(f"row {seq}: its {column} cannot be read", **place, version=version)  # type: ignore[arg-type]
        for seq, version in ((1, 1), (4, None))
    ]
    found = [each for each in problems(file) if each.what.startswith("row ")]
    assert found == (named if value else [])


@pytest.mark.parametrize("column", ["zone", "path", "actor", "tool", "error", "message", "detail"])
def test_a_text_that_is_missing_is_named_with_its_row(file: Path, column: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as damaging:
        (schema,) = damaging.execute("SELECT sql FROM sqlite_master WHERE name = 'rows'").fetchone()
        damaging.execute("PRAGMA writable_schema = ON")
        damaging.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = 'rows'", (schema.replace("TEXT NOT NULL", "TEXT"),)
        )
    meddle(file, f"UPDATE rows SET {column} = NULL WHERE seq = 4")
    with closing(sqlite3.connect(file, isolation_level=None)) as damaging:
        damaging.execute("PRAGMA writable_schema = ON")
        damaging.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'rows'", (schema,))
    place = {"zone": "collab", "path": "plan.md"} | ({column: ""} if column in ("zone", "path") else {})
    found = [each for each in problems(file) if each.what.startswith("row ")]
    assert found == [Damage(f"row 4: its {column} cannot be read", **place)]  # type: ignore[arg-type]


def test_all_texts_of_a_row_that_cannot_be_read_are_named_together(file: Path) -> None:
    meddle(file, "UPDATE rows SET actor = CAST(? AS TEXT), detail = '[1]' WHERE seq = 3", NOT_UTF8)
    assert problems(file) == [Damage("row 3: its actor, detail cannot be read", "collab", "plan.md")]


@pytest.mark.parametrize(
    ("detail", "is_whole"),
    [("", True), ("{}", True), ('{"a": 1}', True), ("[1]", False), ("1", False), ('{"a": ', False)],
)
def test_a_detail_is_nothing_or_an_object(file: Path, detail: str, is_whole: bool) -> None:
    meddle(file, "UPDATE rows SET detail = ? WHERE seq = 1", detail)
    broken = Damage("row 1: its detail cannot be read", "collab", "plan.md", 1)
    assert problems(file) == ([] if is_whole else [broken])


def test_a_detail_that_python_alone_takes_for_json_is_whole(file: Path) -> None:
    with closing(SqliteJournal(file)) as journal:
        journal.append([Note("alice", "t", "collab", "plan.md", detail={"number": float("inf")})])
    assert problems(file) == []


def test_the_head_of_a_moment_is_found_where_versions_were_left_out(file: Path) -> None:
    with closing(SqliteJournal(file)) as journal:
        journal.append([Write("bob", "t", "collab", "plan.md", "three", message="m", expected=2)])
        last = journal.last_seq()
    meddle(file, "UPDATE rows SET version = 900 WHERE seq = ?", last)
    with closing(SqliteJournal(file)) as journal:
        found = [journal.head("collab", "plan.md", as_of=seq) for seq in range(last + 1)]
        assert [head and head.version for head in found] == [None, 1, *[2] * (last - 2), 900]


def test_a_version_that_is_missing_is_named(file: Path) -> None:
    meddle(file, "DELETE FROM rows WHERE seq = 1")
    assert problems(file) == [Damage("1 versions are kept, the newest is v2", "collab", "plan.md")]


@pytest.mark.parametrize(
    ("sql", "what", "version"),
    [
        ("UPDATE rows SET content = NULL WHERE seq = 1", "v1 (row 1): its content is missing", 1),
        (
            "UPDATE rows SET content = 'y' WHERE seq = 1",
            "v1 (row 1): its content does not match its checksum",
            1,
        ),
        ("DELETE FROM contents", "v2 (row 2): its content is missing", 2),
        ("UPDATE contents SET content = 'y'", "v2 (row 2): its content does not match its checksum", 2),
        ("UPDATE rows SET content = NULL WHERE seq = 5", "", None),
        (
            "UPDATE rows SET content = 'y' WHERE seq = 5",
            "row 5: its content does not match its checksum",
            None,
        ),
        (
            "UPDATE rows SET content = CAST(x'ff' AS TEXT) WHERE seq = 3",
            "row 3: its content does not match its checksum",
            None,
        ),
    ],
)
def test_a_content_that_is_not_the_one_that_was_written_is_named(
    file: Path, sql: str, what: str, version: int | None
) -> None:
    """What a row without a version carried may be gone: a revert has no need of it."""
    meddle(file, sql)
    assert problems(file) == ([Damage(what, "collab", "plan.md", version)] if what else [])


@pytest.mark.parametrize(("broken", "told"), [(4096, "database disk image is malformed"), (2, "page")])
def test_a_page_that_is_broken_is_told_before_the_rows(file: Path, broken: int, told: str) -> None:
    """All of it, so that SQLite cannot go on, or how many entries it has."""
    with closing(sqlite3.connect(file)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rows_call'")
        ((size,),) = connection.execute("PRAGMA page_size")
    meddle(file, "UPDATE rows SET content = 'y' WHERE seq = 1")
    with open(file, "r+b") as opened:
        opened.seek((page - 1) * size + (3 if broken < size else 0))
        opened.write(bytes(broken))
    *pages, of_row = problems(file)
    assert [each[1:] for each in pages] == [("workspace", "", None)] * len(pages)
    assert told in pages[0].what
    assert of_row.what == "v1 (row 1): its content does not match its checksum"


def test_another_process_finds_what_this_one_does(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meddle(file, "UPDATE rows SET message = CAST(? AS TEXT) WHERE seq = 1", NOT_UTF8)
    found = [Damage("row 1: its message cannot be read", "collab", "plan.md", 1)]
    assert find_damage_apart(str(file)) == problems(file) == found
    assert main([str(file)]) == 0
    assert json.loads(capsys.readouterr().out) == [[*each] for each in found]


def test_a_process_that_cannot_look_tells_nothing_and_makes_no_file(tmp_path: Path) -> None:
    assert find_damage_apart(str(tmp_path / "none.db")) is None
    assert [*tmp_path.iterdir()] == []


Question = Callable[[SqliteJournal], Sequence[Row | None]]
QUESTIONS: dict[str, Question] = {
    "rows": lambda journal: journal.rows(),
    "rows_before": lambda journal: journal.rows_before(1000),
    "row": lambda journal: [journal.row(1)],
    "head": lambda journal: [journal.head("collab", "plan.md")],
    "heads": lambda journal: [*journal.heads("collab")],
    "heads_of": lambda journal: journal.heads_of([("collab", "plan.md")]),
    "heads_with_content": lambda journal: [
        each and each[0] for each in journal.heads_with_content([("collab", "plan.md")])
    ],
    "heads_and_notes": lambda journal: journal.heads_and_notes(
        [("collab", "plan.md")], [("collab", "plan.md", "alice", "t")]
    )[0],
    "version": lambda journal: [journal.version("collab", "plan.md", 1)],
    "history": lambda journal: journal.history("collab", "plan.md"),
    "versions": lambda journal: [row for row, _ in journal.versions("collab", "plan.md")],
    "refused": lambda journal: journal.refused("collab", "plan.md"),
    "last_note": lambda journal: [journal.last_note("collab", "plan.md", "alice", "t")],
    "last_notes": lambda journal: journal.last_notes([("collab", "plan.md", "alice", "t")]),
    "topic": lambda journal: journal.topic(outside_edits_of("collab", "plan.md")),
    "newest_of_topics": lambda journal: journal.newest_of_topics("outside:"),
    "rows_of_call": lambda journal: journal.rows_of_call("alice", "c"),
    "open_items": lambda journal: journal.open_items("buffer", "alice"),
    "append": lambda journal: [
        journal.append([Write("bob", "t", "collab", "plan.md", "x", expected=0)])[0].head
    ],
    "append with others": lambda journal: [
        journal.append(
            [Write("bob", "t", "collab", "plan.md", "x", expected=0), Note("bob", "t", "collab", "b")]
        )[0].head
    ],
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_each_question_that_comes_upon_a_damaged_text_first_is_answered(
    file: Path, question: Question, caplog: pytest.LogCaptureFixture
) -> None:
    meddle(file, "UPDATE rows SET message = CAST(? AS TEXT)", NOT_UTF8)
    with closing(SqliteJournal(file)) as journal:
        assert {row.message for row in question(journal) if row} == {"\ufffdA\ufffd\ufffd\ufffd"}
        question(journal)
    assert [record.message for record in caplog.records] == [
        f"{file} holds damaged texts: verify names their rows"
    ]


def test_what_changed_and_what_is_broken_is_told_despite_a_damaged_path(file: Path) -> None:
    meddle(file, "UPDATE rows SET path = CAST(? AS TEXT) WHERE seq = 6", NOT_UTF8)
    with closing(SqliteJournal(file)) as journal:
        assert [each.path for each in journal.changed_paths(0, 7)] == ["\ufffdA\ufffd\ufffd\ufffd", "plan.md"]
    meddle(file, "UPDATE rows SET version = 2 WHERE seq = 6")
    with closing(SqliteJournal(file)) as journal:
        assert len(journal.problems()) == 2


def test_a_damaged_content_is_none_that_could_be_read(file: Path) -> None:
    meddle(file, "UPDATE rows SET content = CAST(? AS TEXT) WHERE seq = 1", NOT_UTF8)
    with closing(SqliteJournal(file)) as journal:
        for _ in range(2):
            with pytest.raises(JournalDamaged):
                journal.content(1)
            with pytest.raises(JournalDamaged):
                journal.versions("collab", "plan.md")
        assert journal.content(2) == LARGE


def test_threads_that_come_upon_it_at_once_all_go_on(file: Path) -> None:
    meddle(file, "UPDATE rows SET message = CAST(? AS TEXT)", NOT_UTF8)

    def reads(journal: SqliteJournal, ready: Barrier) -> int:
        ready.wait()
        return len(journal.rows())

    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            with closing(SqliteJournal(file)) as journal:
                ready = Barrier(8)
                found = [pool.submit(reads, journal, ready) for _ in range(8)]
                assert {each.result() for each in found} == {7}


HELD: dict[str, Callable[[SqliteJournal], AbstractContextManager[object]]] = {
    "exclusive": lambda journal: journal.exclusive("a"),
    "claims": lambda journal: journal.claim("a"),
    "presence": lambda journal: nullcontext(journal.presence.hold()),
    "journal.lock": lambda journal: nullcontext(journal.append([Note("alice", "t", "collab", "a")])),
}


@pytest.mark.parametrize("name", HELD)
def test_a_file_that_cannot_be_made_is_an_error_of_the_journal(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        if name == "journal.lock":
            path.mkdir()
        else:
            path.write_text("")
        with pytest.raises(JournalError, match=name), HELD[name](journal):
            pass
