"""Databases and connections whose encoding is not UTF-8."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from cli.running import Captured, printed, printed_json, refusal
from psycopg import sql
from watchroom import Workspace

if TYPE_CHECKING:
    from journal.server import Server

pytestmark = pytest.mark.postgres
TEXT = '{"filepath": "文件 é.md", "content": "中文 é", "message": "新", "expected_version": 0}'


@pytest.fixture(params=["LATIN1", "SQL_ASCII", "EUC_JP"])
def other_encoding(postgres_server: Server, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A database without UTF-8: its encoding and address."""
    name = f"encoded_{request.param.lower()}"
    make = "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL(make).format(sql.Identifier(name), sql.Literal(request.param)))
    return request.param, postgres_server.url(name)


def test_a_database_without_utf8_is_refused_by_name(
    capsys: Captured, tmp_path: Path, other_encoding: tuple[str, str]
) -> None:
    encoding, address = other_encoding
    team = str(tmp_path / "team")
    Workspace.open(team, agents=["alice"]).close()
    commands = [
        ("init", str(tmp_path / "new"), "--agent", "alice", "--database", address),
        ("move", team, address),
        ("call", address, "alice", "collab_list"),
        ("show", address, "files"),
        ("log", address),
        ("verify", address),
        ("member", "list", address),
    ]
    for command in commands:
        said = refusal(capsys, *command)
        assert f"The database's encoding is {encoding}" in said, command
        assert "createdb -T template0 -E UTF8" in said, command
        assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["team"]
    assert printed_json(capsys, "show", team, "agents", "--json"), "the source of a move goes on"


def test_the_encoding_of_a_connection_is_always_utf8(
    capsys: Captured,
    tmp_path: Path,
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    address = new_database()
    printed(capsys, "init", str(tmp_path / "new"), "--agent", "alice", "--database", address)
    printed_json(capsys, "call", address, "alice", "collab_write", TEXT)
    (file,) = printed_json(capsys, "show", address, "files", "--json")
    assert file["path"] == "文件 é.md"
