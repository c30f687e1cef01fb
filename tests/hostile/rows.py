"""Random rows written with plain SQL, past every check that Watchroom makes.

Whoever can write the journal's file, or owns the database, can write any row that its columns take. Tests write such
rows and then open, read and export the workspace.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, get_args

import psycopg
from watchroom.kernel.checkout.layout import CONTROL, JOURNAL_NAME
from watchroom.model import OUTCOMES, Zone

ZONES: Final[Sequence[str]] = (*get_args(Zone), "", "nowhere", "COLLAB", "../collab", "x" * 300)
TOOLS: Final = (
    *("collab_write", "collab_delete", "collab_read", "save_to_my_workspace", "handoff_file", "read_handoff"),
    *(
        "acknowledge_handoff",
        "update_whiteboard",
        "lock_whiteboard",
        "lease_expired",
        "set_config",
        "set_budget",
    ),
    *(
        "resolve_conflict",
        "dismiss_conflict",
        "revert_outside_edit",
        "revert_work",
        "process_lost",
        "mark_as_seen",
    ),
    *(
        "outside_edit",
        "overwritten_edit",
        "lay_out",
        "budget_warning",
        "budget_reached",
        "journal_checkpoint",
    ),
    *("identify_workspace", "send_alert", "ask_person", "answer_request", "withdraw_request", "llm_stream"),
    *("continue_session", "command_output", "run_command", "end_command", "pause_agent", "resume_agent"),
    *("cancel_agent", "stop_agents", "release_agents", "send_message", "spawn_agent", "terminate_agent"),
    *("submit_requirement", "end_task", "set_host", "fork_workspace", "create_document", "edit_document"),
    *(
        "write_file",
        "edit_file",
        "session_step",
        "open_buffer",
        "close_buffer",
        "create_token",
        "revoke_token",
    ),
    *(
        "enroll_person",
        "revoke_person",
        "set_settings",
        "git_import",
        "",
        "\x1b]0;owned\x07",
        "t" * 5000,
        "\u202etool",
    ),
)
ACTORS: Final = (
    *(
        "alice",
        "bob",
        "outside",
        "system",
        "human:dana",
        "human:",
        "user",
        "human",
        "",
        "Alice",
        "alice_to_bob",
    ),
    *(
        "human:\x1b[2J",
        "carol\nalice",
        "a" * 5000,
        "\u202ebob",
        "human:dana\u200b",
        "../alice",
        "at-1",
        "\U0001f9e8",
    ),
)
ERRORS: Final = (
    "",
    "version_conflict",
    "path_blocked",
    "outside_edit",
    "not_laid_out",
    "other_host",
    "no such error",
)
FIELDS: Final = (
    *(
        "call",
        "trace",
        "task",
        "folder",
        "section",
        "presence",
        "checkout",
        "machine",
        "row",
        "reason",
        "key",
        "by",
    ),
    *(
        "idempotency_key",
        "revert",
        "took",
        "gave",
        "before",
        "executable",
        "executable_before",
        "sha256",
        "size",
    ),
    *(
        "changed",
        "current",
        "current_author",
        "status",
        "interrupted",
        "session",
        "agent",
        "agents",
        "request",
        "tool",
    ),
    *(
        "limits",
        "model",
        "usage",
        "cost",
        "budget",
        "tokens",
        "signature",
        "signer",
        "root",
        "rows",
        "until",
        "name",
    ),
    *(
        "origin",
        "replica",
        "steps",
        "step",
        "type",
        "target",
        "to",
        "from",
        "arguments",
        "policy",
        "mode",
        "conflict",
    ),
    *(
        "resolved",
        "pid",
        "exit_code",
        "command",
        "output",
        "started",
        "ended",
        "parent",
        "depth",
        "role",
        "workspacePath",
    ),
    *(
        "requirement",
        "messages",
        "events",
        "state",
        "schema",
        "ops",
        "line",
        "lines",
        "id",
        "kind",
        "expires",
        "holder",
    ),
)
_NUMBERS: Final = (0, 1, -1, 2, 3, 10**6, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
_TEXTS: Final = (
    *(
        "",
        "alice",
        "bob",
        "plan.md",
        "approve",
        "deny",
        "ok",
        "true",
        "x" * 10_000,
        "../../outside/secret.txt",
        "/etc/hosts",
    ),
    *(
        "\x1b]52;c;AAAA\x07",
        "a\nb\rc",
        "\u202e\u2066",
        "\ud7ff\ue000",
        "e\u0301" * 50,
        "[red]x[/red]",
        "; rm -rf ~",
        "$(id)",
    ),
)


class HostileRow(NamedTuple):
    """A row as SQL takes it: ``content`` and ``detail`` are bytes, which need not be UTF-8."""

    seq: int
    time: int
    actor: str
    tool: str
    zone: str
    path: str
    version: int | None
    base: int | None
    outcome: str
    error: str
    message: str
    sha256: str | None
    size: int | None
    detail: bytes
    content: bytes | None


def hostile_paths(outside: Path) -> list[str]:
    """Paths that no zone allows; many lead to the folder ``outside`` the workspace, or to Watchroom's own files."""
    away = str(outside)
    up = ["../" * n + f"{outside.name}/{name}" for n in range(1, 6) for name in ("secret.txt", "new.txt")]
    within = [f"alice/{path}" for path in up] + [f"alice_to_bob/{path}" for path in up]
    return [
        *up,
        *within,
        *(
            f"{prefix}{away}/{name}"
            for prefix in ("", "/", "alice/", "a/")
            for name in ("secret.txt", "new.txt")
        ),
        *(
            "",
            ".",
            "..",
            "/",
            "//",
            "./",
            "../",
            "a/..",
            "a/../..",
            "a/./b",
            "a//b",
            "/a",
            "a/",
            "alice",
            "alice/",
        ),
        *(
            "..\\..\\secret.txt",
            "C:\\secret.txt",
            "C:secret.txt",
            "a:b",
            "con",
            "COM1.txt",
            "aux.md",
            "nul/x",
        ),
        *(
            ".watchroom/journal.db",
            ".watchroom/hooks",
            "journal.db",
            "journal.url",
            "lock",
            "tmp/x",
            ".git/config",
        ),
        *(
            "a/.versions/x",
            ".crdt_state/x",
            ".locks",
            "a/.GIT/hooks/post-checkout",
            "alice/.git/config",
            "x.meta.json",
        ),
        *(
            "alice_to_bob",
            "alice_to_bob/",
            "alice_to_bob/x.meta.json",
            "_to_/x",
            "alice_to_/x",
            "Alice/x",
            "system/x",
        ),
        *(
            "human:dana/x",
            "outside/x",
            "global-whiteboard",
            "top-layer/../../x",
            "bottom-layer-../x",
            "mid-layer-",
            "GLOBAL",
        ),
        *(
            "a\nb",
            "a\tb",
            "a\x1b[2Jb",
            "a\x7fb",
            "a\u200bb",
            "a\u202eb",
            "a\u2028b",
            "e\u0301",
            "\u2025/x",
            "a\u2215b",
        ),
        *(
            "\uff0e\uff0e/x",
            "x" * 201,
            "x" * 5000,
            "/".join("d" * 40),
            "/".join("d" * 3000),
            " a",
            "a ",
            "a.",
            ".ſ",
        ),
        *(
            ".ver\u017fions/x",
            "\ufffe",
            "\U000e0041",
            "\ue000",
            "~",
            "~/x",
            "$HOME/x",
            "-rf",
            "--help",
            "\u212aing",
        ),
    ]


def usual_paths(zone: str) -> list[str]:
    """Some valid paths of a zone, few enough for later rows to meet earlier ones."""
    return {
        "private": ["alice/notes.md", "bob/a/b.txt", "alice/A.md", "alice/a.md"],
        "handoff": ["alice_to_bob/data.csv", "bob_to_alice/x/y.txt"],
        "collab": ["plan.md", "a/b.md", "a", "PLAN.md", "a/b.md/c"],
        "board": ["global", "top-layer", "mid-layer-dev", "bottom-layer-alice"],
        "lease": ["global", "top-layer"],
        "config": ["config.toml", "alice"],
        "workspace": ["", "host", "id", "lease"],
        "session": ["alice/s1", "bob/s2"],
        "request": ["alice/s1/1", "alice/c1", "1"],
        "realtime": ["doc", "notes"],
        "task": ["t1", "t2"],
        "file": ["t1/a.txt", "t2/b/c.txt"],
        "command": ["t1/1", "t2/1"],
        "agent": ["alice", "bob"],
        "buffer": ["alice/b1", "bob/b2"],
        "token": ["tok1"],
        "revert": ["r1"],
        "person": ["dana", "human:dana"],
        "settings": ["settings", "settings.toml"],
    }.get(zone, ["x"])


class RowMaker:
    """Makes random rows with ``random``, numbered after ``last``.

    ``outside``: a folder that hostile paths lead to. ``with_nul``: whether texts may hold NUL, which SQLite keeps and
    PostgreSQL does not; ``with_bytes``: whether details and contents may be other bytes than UTF-8.
    """

    def __init__(
        self, random: Random, outside: Path, *, last: int = 0, with_nul: bool = True, with_bytes: bool = True
    ) -> None:
        self._random = random
        self._hostile = hostile_paths(outside)
        self._seq = last
        self._with_nul = with_nul
        self._with_bytes = with_bytes
        self._made: set[tuple[str, str, int]] = set()
        self._contents = (b"", b"text\n", b"x" * 70_000, *(text.encode() for text in _TEXTS))

    def skip_to(self, last: int) -> None:
        """Number the next rows after ``last``, which others may have made meanwhile."""
        self._seq = max(self._seq, last)

    def rows(self, count: int) -> Iterator[HostileRow]:
        """``count`` random rows."""
        return (self.row() for _ in range(count))

    def row(self, *, zone: str | None = None, path: str | None = None) -> HostileRow:
        """A random row, of ``zone`` and at ``path`` where they are given."""
        pick = self._random
        self._seq += 1 if pick.random() < 0.98 else pick.randrange(1, 1000)
        zone = pick.choice(ZONES) if zone is None else zone
        path = self._path(zone) if path is None else path
        version = self._version(zone, path) if pick.random() < 0.6 else None
        content = self._content() if pick.random() < 0.8 else None
        sha256 = None if content is None else hashlib.sha256(content).hexdigest()
        size: int | None = None if content is None else len(content)
        if pick.random() < 0.05:
            sha256 = pick.choice([None, "", "0" * 64, "F" * 64, "no checksum", "a" * 5000])
            size = pick.choice([None, *_NUMBERS])
        return HostileRow(
            self._seq,
            pick.choice([0, 1, -1, -(10**18), 2**63 - 1, -(2**63), 1_760_000_000_000_000_000 + self._seq]),
            self._text(ACTORS),
            self._text(TOOLS),
            zone,
            path,
            version,
            pick.choice([None, 0, -1, version, *_NUMBERS]),
            "ok" if version is not None else pick.choice(OUTCOMES),
            self._text(ERRORS),
            self._text(_TEXTS),
            sha256,
            size,
            self._detail(),
            content,
        )

    def _path(self, zone: str) -> str:
        pick = self._random.random()
        if pick < 0.5:
            return self._random.choice(usual_paths(zone))
        if pick < 0.55:
            return self._random.choice(usual_paths(self._random.choice(ZONES)))
        return self._text(self._hostile)

    def _version(self, zone: str, path: str) -> int:
        """A version that the path has not yet: mostly the next one, at times a far one."""
        version = 1 if self._random.random() < 0.95 else self._random.choice([7, 10**6, 2**63 - 1])
        while (zone, path, version) in self._made:
            version = version + 1 if version < 2**62 else self._random.randrange(1, 2**62)
        self._made.add((zone, path, version))
        return version

    def _text(self, texts: Sequence[str]) -> str:
        text = self._random.choice(texts)
        if self._with_nul and self._random.random() < 0.01:
            at = self._random.randint(0, len(text))
            return f"{text[:at]}\0{text[at:]}"
        return text

    def _content(self) -> bytes:
        kind = self._random.random()
        if kind < 0.3:
            return self._random.choice(self._contents)
        if kind < 0.7:
            return self._json(0)
        if kind < 0.8:
            return b"".join(
                self._random.choice([b"[agents.alice]\n", b"id = 1\n", b'x = "y"\n', b"[[", b"= ="])
                for _ in range(4)
            )
        if kind < 0.85:
            return self._nested()
        return self._bytes()

    def _bytes(self) -> bytes:
        """Any bytes where they are allowed, else text."""
        data = self._random.randbytes(self._random.choice([1, 2, 40, 300]))
        return data if self._with_bytes else data.decode("latin-1").replace("\0", "").encode()

    def _detail(self) -> bytes:
        kind = self._random.random()
        if kind < 0.2:
            return b""
        if kind < 0.8:
            return self._json(0, is_object=True)
        if kind < 0.9:
            wrong = [
                b"{",
                b"[]",
                b"null",
                b"1e999",
                b'"text"',
                b'{"a":1,"a":2}',
                b'{"call":"\\ud800"}',
                b"{} {}",
                b"NaN",
            ]
            return self._random.choice(wrong)
        return self._nested() if kind < 0.95 else self._bytes()

    def _nested(self) -> bytes:
        depth = self._random.choice([50, 500, 5000])
        return b'{"detail":' + b"[" * depth + b"]" * (depth if self._random.random() < 0.8 else 0) + b"}"

    def _json(self, depth: int, *, is_object: bool = False) -> bytes:
        text = json.dumps(self._value(depth, is_object=is_object), ensure_ascii=self._random.random() < 0.2)
        return text.encode("utf-8", "backslashreplace")

    def _value(self, depth: int, *, is_object: bool = False) -> Any:
        kind = (
            0
            if is_object
            else self._random.randrange(3 if depth < 3 else 2, 9)
            if depth
            else self._random.randrange(9)
        )
        if kind == 0 or (kind == 3 and depth < 3):
            fields = self._random.sample(FIELDS, self._random.randrange(5))
            return {field: self._value(depth + 1) for field in fields}
        if kind == 4 and depth < 3:
            return [self._value(depth + 1) for _ in range(self._random.randrange(4))]
        if kind == 5:
            return self._random.choice(_NUMBERS)
        if kind == 6:
            return self._random.choice([True, False, None, 0.5, -1e300, 10**400])
        return self._text(_TEXTS)


def insert_into_file(root: Path | str, rows: Iterable[HostileRow]) -> int:
    """Insert ``rows`` into the journal in the workspace's folder ``root``; return how many it took."""
    taken = 0
    sql = (
        "INSERT OR IGNORE INTO rows (seq, time, actor, tool, zone, path, version, base, outcome, error, message, sha256,"
        " size, detail, content) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,CAST(? AS TEXT),CAST(? AS TEXT))"
    )
    with closing(sqlite3.connect(Path(root, CONTROL, JOURNAL_NAME))) as journal:
        with journal:
            for row in rows:
                # Computed columns refuse some values: that is the schema's check, and the row is not there.
                try:
                    taken += journal.execute(sql, row).rowcount
                except sqlite3.Error:
                    continue
        journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return taken


def insert_into_server(address: str, rows: Iterable[HostileRow]) -> int:
    """Insert ``rows`` into the journal at ``address``, as its owner; return how many it took.

    A row that a trigger refuses is inserted without triggers, and its head by hand.
    """
    sql = (
        "INSERT INTO watchroom.rows (seq, time, actor, tool, zone, path, version, base, outcome, error, message, sha256,"
        " size, detail, content) VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"
    )
    head = (
        "INSERT INTO watchroom.heads VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (zone, path) DO UPDATE SET seq = excluded.seq, is_live = excluded.is_live"
    )
    taken = last = 0
    with psycopg.connect(address) as connection:
        for row in rows:
            try:
                values = (*row[:13], row.detail.decode(), row.content)
            except UnicodeDecodeError:
                continue
            last = max(last, row.seq)
            try:
                with connection.transaction():
                    connection.execute(sql, values)
            except psycopg.Error:
                try:
                    with connection.transaction():
                        connection.execute("SET LOCAL session_replication_role = replica")
                        connection.execute(sql, values)
                        if row.version is not None:
                            connection.execute(head, (row.zone, row.path, row.seq, row.sha256 is not None))
                        connection.execute("SET LOCAL session_replication_role = origin")
                except psycopg.Error:
                    continue
            taken += 1
        connection.execute("UPDATE watchroom.tip SET seq = greatest(seq, %s)", (last,))
    return taken
