"""The members of a journal on a server: a login role for each agent and each person."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import Connection, sql

from watchroom.errors import JournalError
from watchroom.kernel.journal.postgres.connections import Connections, translated
from watchroom.kernel.journal.postgres.schema import migrate
from watchroom.model import HUMAN_PREFIX
from watchroom.validation import check_agent_id, check_human_name

MemberKind: TypeAlias = Literal["agent", "supervisor", "viewer"]
KINDS: Final[tuple[MemberKind, ...]] = ("agent", "supervisor", "viewer")


class DatabaseMember(NamedTuple):
    """A login ``role`` of the server for an ``actor``, which is an agent's id or ``human:NAME``.

    ``is_connected``: whether a session of this login exists.
    """

    role: str
    actor: str
    kind: MemberKind
    is_connected: bool = False


class DatabaseMembers:
    """The members of the journal at ``url``, the address with the owner's login."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connections = Connections(url)

    def add(self, name: str, kind: MemberKind) -> str:
        """Make ``name`` (an agent's id or a person's name) a member, or give the member a new password.

        Return the address for the login. It cannot be read later. Raise `InvalidAgentId`, `JournalDenied` if
        the owner cannot create roles, and `JournalError`.
        """
        actor = check_agent_id(name) if kind == "agent" else HUMAN_PREFIX + check_human_name(name)
        password = secrets.token_urlsafe(24)
        with self._connected() as connection, connection.transaction():
            migrate(connection)
            role = self._role(connection, kind, name)
            known = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
            connection.execute(
                sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                    sql.SQL("ALTER" if known else "CREATE"), sql.Identifier(role), sql.Literal(password)
                )
            )
            connection.execute("SELECT watchroom.admit(%s, %s, %s)", (role, actor, kind))
        return self._address(role, password)

    def all(self) -> list[DatabaseMember]:
        """Return all members, sorted by role. Raise `JournalError`."""
        with self._connected() as connection:
            found = connection.execute(
                "SELECT role, actor, kind, EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.usename = m.role"
                " AND a.datname = current_database()) FROM watchroom.members AS m ORDER BY role"
            )
            return [DatabaseMember(*fields) for fields in found]

    def revoke(self, name: str) -> list[DatabaseMember]:
        """Remove the member ``name`` and end its connections. Return the removed members. Raise
        `JournalError`."""
        with self._connected() as connection:
            gone = [each for each in self.all() if each.actor in (name, HUMAN_PREFIX + name)]
            if not gone:
                raise JournalError(reason=f"{name} is no member")
            for member in gone:
                with connection.transaction():
                    connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(member.role)))
                    connection.execute("DELETE FROM watchroom.members WHERE role = %s", (member.role,))
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
                    " AND datname = current_database()",
                    (member.role,),
                )
        return gone

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._connections.use() as connection:
                yield connection
        except psycopg.Error as error:
            raise translated(error) from error

    @staticmethod
    def _role(connection: Connection, kind: MemberKind, name: str) -> str:
        """Return the name of the login, of at most 63 bytes. It contains the name of the database, because
        all databases of a server share its roles."""
        database = str(connection.info.dbname)
        role = f"{database}_{'agent' if kind == 'agent' else 'person'}_{name}"
        if len(role.encode()) > 63:
            raise JournalError(reason=f"{role} is longer than the 63 bytes that PostgreSQL allows a role")
        return role

    def _address(self, role: str, password: str) -> str:
        url = urlsplit(self._url)
        place = url.netloc.rpartition("@")[2]
        return urlunsplit(url._replace(netloc=f"{quote(role, safe='')}:{quote(password)}@{place}"))
