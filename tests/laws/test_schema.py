"""Opening a journal: an older one is brought up to date, a newer one or something else is refused unharmed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from evidence import all_rows
from journal.sample import OF_EVERY_KIND, OPEN, TOPICS
from watchroom.errors import JournalError, JournalTooNew
from watchroom.kernel.journal import SqliteJournal, topics
from watchroom.kernel.journal.sqlite.schema import STEPS
from watchroom.model import Note, Write
from watchroom.validation import sha256

FILL_THE_DISK = """
import resource, signal, sys
from watchroom.errors import JournalError
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Write

journal = SqliteJournal(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
text = "x" * 60_000
accepted = 0
try:
    while True:
        drafts = [Write("alice", "t", "collab", f"{accepted} {n}", text) for n in range(2)]
        journal.append(drafts)
        accepted += 1
except JournalError as refusal:
    refused = refusal.code
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if len(sys.argv) > 2:
    journal.append([Write("alice", "t", "collab", "after", "there is room again")])
print(accepted, refused)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_a_journal_of_the_first_schema_is_brought_up_to_date_with_its_rows(file: Path) -> None:
    old = sqlite3.connect(file)
    old.executescript(STEPS[0])
    old.execute("PRAGMA user_version = 1")
    for seq, text in enumerate(("one", "two"), start=1):
        old.execute(
            "INSERT INTO rows VALUES (?, 5, 'alice', 'collab_write', 'collab', 'plan.md', ?, ?, 'ok', '', '', ?, 3, '', ?)",
            (seq, seq, seq - 1, sha256(text.encode()), text),
        )
    old.commit()
    old.close()

    journal = SqliteJournal(file)
    assert [journal.content(row.seq) for row in journal.history("collab", "plan.md")] == ["one", "two"]
    (appended,) = journal.append([Write("bob", "collab_write", "collab", "plan.md", "three", expected=2)])
    assert (appended.row.seq, appended.row.version) == (3, 3)
    assert journal.problems() == []
    journal.close()
    now = sqlite3.connect(file)
    assert now.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
    with pytest.raises(sqlite3.IntegrityError, match="immutable"):
        now.execute("DELETE FROM rows")
    now.close()


def of_the_schema(version: int, file: Path, newer: Path) -> SqliteJournal:
    """A journal that an older Watchroom wrote, with the rows of a newer one, brought up to date."""
    journal = SqliteJournal(newer)
    journal.append(OF_EVERY_KIND)
    journal.close()
    old = sqlite3.connect(file)
    for step in STEPS[:version]:
        old.executescript(step)
    old.execute(f"PRAGMA user_version = {version}")
    names = ",".join(name for _, name, *_ in old.execute("PRAGMA table_info(rows)"))
    old.execute("ATTACH ? AS newer", (str(newer),))
    old.execute(f"INSERT INTO rows ({names}) SELECT {names} FROM newer.rows ORDER BY seq")
    old.commit()
    old.close()
    return SqliteJournal(file)


@pytest.mark.parametrize("version", range(2, len(STEPS) + 1))
def test_rows_of_older_schemas_are_found_as_new_ones_are(file: Path, version: int) -> None:
    journal = of_the_schema(version, file, file.with_name("newer.db"))
    assert {name: [row.tool for row in journal.topic(name)] for name in TOPICS} == TOPICS
    for (zone, holder), paths in OPEN.items():
        items = journal.open_items(zone, holder)
        assert [row.path for row in items] == paths
        assert items == [journal.head(zone, path) for path in paths]
    assert journal.open_items("handoff", "alice") == []
    calls = {
        key: [row.zone for row in journal.rows_of_call("alice", key)] for key in ("s1/1/0", "s1/2/0", "5")
    }
    assert calls == {"s1/1/0": ["agent"], "s1/2/0": ["collab"], "5": []}
    assert journal.rows_of_call("bob", "s1/1/0") == []
    assert journal.problems() == []
    journal.close()


def test_a_part_of_a_topic_or_of_notes_is_given_newest_first(file: Path) -> None:
    journal = SqliteJournal(file)
    message = Note("human:dana", "send_message", "session", "alice")
    journal.append([message] * 5)
    name = topics.messages_to("session", "alice")
    for found in (
        journal.topic(name, after=1, until=4, limit=2),
        journal.notes("session", "alice", "human:dana", "send_message", after=1, until=4, limit=2),
    ):
        assert [row.seq for row in found] == [4, 3]
    assert [row.seq for row in journal.topic(name)] == [5, 4, 3, 2, 1]
    journal.close()


def test_a_journal_of_a_newer_watchroom_is_refused_and_left_as_it_is(file: Path) -> None:
    SqliteJournal(file).close()
    newer = sqlite3.connect(file)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(JournalTooNew) as refusal:
        SqliteJournal(file)
    assert refusal.value.values == {"found": 99, "supported": len(STEPS)}
    newer = sqlite3.connect(file)
    assert newer.execute("PRAGMA user_version").fetchone() == (99,)
    newer.close()


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(file: Path) -> None:
    text = "This is a letter, not a database. " * 100
    file.write_text(text)
    with pytest.raises(JournalError):
        SqliteJournal(file)
    assert file.read_text() == text


def test_a_folder_in_place_of_the_journal_is_refused(file: Path) -> None:
    file.mkdir()
    with pytest.raises(JournalError):
        SqliteJournal(file)


@pytest.mark.parametrize("then", [[], ["go on"]], ids=["ended", "went on"])
def test_a_commit_that_the_disk_has_no_room_for_is_refused_whole(file: Path, then: list[str]) -> None:
    """A limit on the size of files stands in for a full disk: SQLite's write fails half-way through a commit."""
    command = [sys.executable, "-c", FILL_THE_DISK, str(file), *then]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    accepted = int(output[0])
    assert (accepted > 0, output[1]) == (True, "journal_failed")
    journal = SqliteJournal(file)
    expected = [f"{n} {part}" for n in range(accepted) for part in range(2)] + ["after"] * len(then)
    assert [row.path for row in all_rows(journal)] == expected
    assert journal.problems() == []
    journal.append([Write("alice", "t", "collab", "later", "goes on")])
    assert journal.problems() == []
    journal.close()
