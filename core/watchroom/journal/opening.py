"""Opens a journal by its address."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from watchroom.errors import ExtraMissing, JournalError
from watchroom.journal.protocol import Journal
from watchroom.journal.sqlite import SqliteJournal
from watchroom.platforms import Platform

_SCHEMES: Final = ("postgresql", "postgres")
_SECRETS: Final = ("password", "sslpassword", "passfile")


def is_server_address(where: str | os.PathLike[str]) -> bool:
    """Whether ``where`` is the address of a journal on a server."""
    scheme, is_url, _ = os.fspath(where).partition("://")
    return bool(is_url) and scheme in _SCHEMES


def database_name(address: str) -> str:
    """What people may read of the ``address`` of a database: its name and where it is, without who and with
    which password."""
    url = urlsplit(address)
    host = url.hostname or dict(parse_qsl(url.query)).get("host", "")
    name = url.path.removeprefix("/") or "postgres"
    return f"{name}@{host}" if host else name


def without_password(address: str) -> str:
    """Return the ``address`` of a database as commands on the screen may have it: without a password."""
    scheme, _, rest = address.partition("://")
    where, _, query = rest.partition("?")
    server, slash, database = where.partition("/")
    login, at, hosts = server.rpartition("@")
    kept = [(name, value) for name, value in parse_qsl(query) if name not in _SECRETS]
    shown = f"{scheme}://{login.partition(':')[0]}{at}{hosts}{slash}{database}"
    return f"{shown}?{urlencode(kept)}" if kept else shown


def open_journal(where: str | os.PathLike[str], platform: Platform | None = None) -> Journal:
    """The journal at ``where``: the path of a SQLite file, made if missing; ``postgresql://…`` for the one in
    a server's database (extra ``postgres``), made if missing; or ``memory:`` for a new one of this process
    alone. ``platform`` is the operating system (default: this machine's).

    Raises `ExtraMissing`, `JournalError` for an address that no backend answers to, and as the backend does.
    """
    address = os.fspath(where)
    if address == "memory:":
        from watchroom.journal.memory import MemoryJournal

        return MemoryJournal()
    if is_server_address(address):
        try:
            from watchroom.journal.postgres import PostgresJournal
        except ImportError as error:
            raise ExtraMissing(extra="postgres", package="psycopg") from error
        return PostgresJournal(address)
    scheme, is_url, _ = address.partition("://")
    if is_url:
        raise JournalError(reason=f"no journal answers to {scheme}://")
    return SqliteJournal(address, platform)
