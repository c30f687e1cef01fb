"""Opens a journal by its address."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from watchroom.errors import ExtraMissing, JournalError
from watchroom.kernel.journal.protocol import Journal
from watchroom.kernel.journal.sqlite import SqliteJournal
from watchroom.platform import Platform

_SCHEMES: Final = ("postgresql", "postgres")
_SECRETS: Final = ("password", "sslpassword", "passfile")


def is_server_address(where: str | os.PathLike[str]) -> bool:
    """Return whether ``where`` is the address of a journal on a server."""
    scheme, is_url, _ = os.fspath(where).partition("://")
    return bool(is_url) and scheme in _SCHEMES


def database_name(address: str) -> str:
    """Return the name and the host of the database at ``address``, without login and password."""
    url = urlsplit(address)
    host = url.hostname or dict(parse_qsl(url.query)).get("host", "")
    name = url.path.removeprefix("/") or "postgres"
    return f"{name}@{host}" if host else name


def without_password(address: str) -> str:
    """Return the ``address`` of a database without its password, for display in commands."""
    scheme, _, rest = address.partition("://")
    where, _, query = rest.partition("?")
    server, slash, database = where.partition("/")
    login, at, hosts = server.rpartition("@")
    kept = [(name, value) for name, value in parse_qsl(query) if name not in _SECRETS]
    shown = f"{scheme}://{login.partition(':')[0]}{at}{hosts}{slash}{database}"
    return f"{shown}?{urlencode(kept)}" if kept else shown


def open_journal(where: str | os.PathLike[str], platform: Platform | None = None) -> Journal:
    """Open the journal at ``where``, and create it if it does not exist.

    - ``where``: the path of a SQLite file, or ``postgresql://…`` for a database on a server (extra
      ``postgres``).
    - ``platform``: the operating system, default: this machine's.

    Raise `ExtraMissing` if the extra is not installed, `JournalError` if the scheme of the address is
    unknown, and the errors of the backend.
    """
    address = os.fspath(where)
    if is_server_address(address):
        try:
            from watchroom.kernel.journal.postgres import PostgresJournal
        except ImportError as error:
            raise ExtraMissing(extra="postgres", package="psycopg") from error
        return PostgresJournal(address)
    scheme, is_url, _ = address.partition("://")
    if is_url:
        raise JournalError(reason=f"no journal answers to {scheme}://")
    return SqliteJournal(address, platform)
