"""Which paths may become files: the rule in Python and the rule in PostgreSQL, one against the other."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final, get_args
from uuid import uuid4

import psycopg
import pytest
from effort import rounds
from hostile.rows import hostile_paths, usual_paths
from memory_journal import MemoryJournal
from watchroom.errors import InvalidPath
from watchroom.kernel.journal import open_journal
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.kernel.rules.row_files import ZONES_WITH_FILES, find_flaw
from watchroom.model import Note, Write, Zone

ZONES: Final = get_args(Zone)
PIECES: Final = (
    *(
        "a",
        "b",
        "alice",
        "bob",
        "_to_",
        "/",
        "/",
        "//",
        ".",
        "..",
        "../",
        "./",
        "\\",
        ":",
        " ",
        "x" * 100,
        "con",
        "nul",
    ),
    *(
        "COM1",
        "conin$",
        ".git",
        ".GIT",
        ".watchroom",
        ".versions",
        ".ver\u017fions",
        ".meta.json",
        ".META.J\u017fON",
    ),
    *(
        "global",
        "top-layer",
        "mid-layer-",
        "bottom-layer-",
        "config.toml",
        "\u0301",
        "e\u0301",
        "\u00e9",
        "\u00a0",
    ),
    *(
        "\u1680",
        "\u3000",
        "\u200b",
        "\u2025",
        "\uff0e",
        "\ufb06",
        "\u212a",
        "\u0130",
        "\u1e9e",
        "\u00b9",
        "\n",
        "\x7f",
    ),
    *(
        "\U0001f642",
        "\U000e0041",
        "\ue000",
        "-",
        "_",
        "A",
        "0",
        "\u6587",
        "~",
        "outside",
        "system",
        "human",
        "t1/",
        "s1",
    ),
)


@pytest.fixture
def server(new_database: Callable[[], str]) -> Iterator[psycopg.Connection[tuple[str | None, ...]]]:
    with psycopg.connect(new_database(), autocommit=True) as connection:
        connection.execute("SET search_path = watchroom")
        yield connection


def random_path(chance: Random) -> str:
    """A path of pieces that rules look at, at times with a letter of any script that this Unicode knows."""
    pieces = [chance.choice(PIECES) for _ in range(chance.randrange(1, 7))]
    if chance.random() < 0.2:
        letter = chr(chance.randrange(1, 0x110000))
        if unicodedata.category(letter) not in ("Cn", "Cs"):
            pieces.insert(chance.randrange(len(pieces) + 1), letter)
    return "".join(pieces)


@pytest.mark.postgres
def test_python_and_postgresql_name_the_same_broken_rule(
    server: psycopg.Connection[tuple[str | None, ...]], tmp_path: Path
) -> None:
    chance = Random(7)
    known = [*hostile_paths(tmp_path), *(path for zone in ZONES for path in usual_paths(zone))]
    paths = [*known, *(random_path(chance) for _ in range(rounds(3000, 100_000)))]
    asked = [
        (zone, path)
        for path in paths
        for zone in (ZONES if path in known else [chance.choice(ZONES_WITH_FILES)])
    ]
    answers = server.execute(
        "SELECT path_flaw(zone, path) FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t (zone, path, n) ORDER BY n",
        ([zone for zone, _ in asked], [path for _, path in asked]),
    ).fetchall()
    differing = [
        (zone, path, find_flaw(zone, path), flaw)
        for (zone, path), (flaw,) in zip(asked, answers, strict=True)
        if find_flaw(zone, path) != flaw
    ]
    assert differing == []
    # Neither rule says the same of everything.
    assert {flaw for (flaw,) in answers} >= {
        None,
        "dot_part",
        "no_owner",
        "board_name",
        "reserved",
        "part_edges",
        "not_nfc",
    }


@pytest.mark.postgres
def test_every_character_is_judged_alike(server: psycopg.Connection[tuple[str | None, ...]]) -> None:
    numbers = [
        number
        for number in range(1, 0x110000)
        if unicodedata.category(chr(number)) not in ("Cn", "Cs", "Lo") or number < 0x3000
    ]
    answers = server.execute(
        "SELECT path_flaw('collab', 'a' || chr(n) || 'b') FROM unnest(%s::integer[]) WITH ORDINALITY AS t (n, o) ORDER BY o",
        (numbers,),
    ).fetchall()
    assert [
        hex(number)
        for number, (flaw,) in zip(numbers, answers, strict=True)
        if unicodedata.category(chr(number)) != "Cn" and find_flaw("collab", f"a{chr(number)}b") != flaw
    ] == []


@pytest.mark.parametrize("zone", ZONES_WITH_FILES)
def test_the_library_appends_no_version_at_a_path_that_breaks_its_zone_s_rules(
    zone: Zone, tmp_path: Path
) -> None:
    for journal in (MemoryJournal(), open_journal(str(tmp_path / "journal.db"))):
        for path in hostile_paths(tmp_path):
            if find_flaw(zone, path) is None:
                continue
            with pytest.raises(InvalidPath) as refusal:
                journal.append(
                    [Note("alice", "t", "collab", "plan.md"), Write("alice", "t", zone, path, "x")]
                )
            assert refusal.value.values["rule"] == find_flaw(zone, path)
        assert journal.last_seq() == 0
        # A refusal may name any path.
        journal.append([Note("alice", "t", zone, "../../x", "denied", "invalid_path")])
        journal.close()


@pytest.mark.postgres
def test_the_server_refuses_a_member_s_draft_and_names_the_rule(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    """Whoever has an agent's address need not use this library."""
    owner = new_database()
    members = DatabaseMembers(owner)
    address = members.add("alice", "agent")
    members.close()
    allowed: list[Zone] = ["collab", "private", "handoff", "board", "lease", "realtime", "file"]
    with psycopg.connect(address, autocommit=True) as login:
        for zone in allowed:
            for path in (path for path in hostile_paths(tmp_path) if "\0" not in path):
                prefix = {"private": "alice/", "handoff": "alice_to_"}.get(zone, "")
                flaw = find_flaw(zone, path)
                if flaw is None or not path.startswith(prefix):
                    continue
                with pytest.raises(
                    psycopg.errors.CheckViolation, match=f"{flaw}|path is too long|not valid in this zone"
                ):
                    append_by_sql(login, zone, path)
    with closing(open_journal(owner)) as journal:
        assert journal.last_seq() == 0


def append_by_sql(login: psycopg.Connection[tuple[object, ...]], zone: str, path: str) -> None:
    """Append a version by the server's function, without this library."""
    draft = {
        "w": True,
        "actor": "alice",
        "tool": "t",
        "zone": zone,
        "path": path,
        "message": "",
        "base": -1,
        "detail": "",
        "key": "",
        "blockable": True,
        "above": [],
        "conditions": None,
    }
    login.execute(
        "SELECT * FROM watchroom.append(%s, %s::jsonb, %s::bytea[])", (uuid4(), json.dumps([draft]), [b"{}"])
    )
