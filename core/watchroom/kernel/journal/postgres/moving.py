"""The server's journal as the source or the target of a move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from watchroom.errors import JournalError, JournalInUse
from watchroom.kernel.journal.postgres.connections import Connections, translated
from watchroom.kernel.journal.postgres.journal import PostgresJournal
from watchroom.kernel.journal.postgres.queries import CONTENTS_AFTER
from watchroom.kernel.journal.protocol import Journal
from watchroom.kernel.journal.sql import decode_content
from watchroom.model import Row

INLINE_BYTES: Final = 64 * 1024
_COPY: Final = (
    "COPY watchroom.rows (seq,time,actor,tool,zone,path,version,base,outcome,error,message,sha256,size,"
    "detail,content) FROM STDIN"
)
_RETIRE: Final = """
CREATE OR REPLACE FUNCTION watchroom.refuse_append() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the journal was moved: open the workspace again';
END $$;
CREATE OR REPLACE TRIGGER rows_were_moved BEFORE INSERT ON watchroom.rows
    FOR EACH STATEMENT EXECUTE FUNCTION watchroom.refuse_append()
"""


class PostgresMove:
    """`MoveSide` of the journal in the database at ``url``."""

    def __init__(self, url: str) -> None:
        # Creates or migrates the tables.
        self._journal = PostgresJournal(url)
        # A batch may take any amount of time.
        self._connections = Connections(url, silence=None)

    @property
    def journal(self) -> Journal:
        return self._journal

    def last_seq(self) -> int:
        return self._journal.last_seq()

    def read(self, after: int, limit: int) -> list[tuple[Row, str | None]]:
        try:
            with self._connections.use() as connection:
                found = connection.execute(CONTENTS_AFTER, (after, limit), binary=True).fetchall()
        except psycopg.Error as error:
            raise translated(error) from error
        return [(Row._make(fields[:-1]), decode_content(fields[-1])) for fields in found]

    def write(self, rows: Sequence[tuple[Row, str | None]]) -> None:
        nul = next(
            (row for row, _ in rows if any("\0" in each for each in row if isinstance(each, str))), None
        )
        if nul is not None:
            raise JournalError(
                reason=f"row {nul.seq} holds the character NUL, which PostgreSQL keeps in no text"
            )
        try:
            with (
                self._connections.use() as connection,
                connection.transaction(),
                connection.cursor() as cursor,
            ):
                for row, content in rows:
                    if content is not None and (row.size or 0) > INLINE_BYTES:
                        cursor.execute(
                            "INSERT INTO watchroom.contents VALUES (%s, %s) ON CONFLICT DO NOTHING",
                            (row.sha256, content.encode()),
                        )
                with cursor.copy(_COPY) as copy:
                    for row, content in rows:
                        is_inline = content is not None and (row.size or 0) <= INLINE_BYTES
                        copy.write_row(
                            (*row, content.encode() if content is not None and is_inline else None)
                        )
                last = rows[-1][0]
                cursor.execute("UPDATE watchroom.tip SET seq = %s, time = %s", (last.seq, last.time))
        except psycopg.Error as error:
            raise translated(error) from error

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """See `MoveSide.frozen`. Appends of all machines wait for the lock on the number of the newest
        row."""
        present = [each for each in self._journal.presence.all() if each.is_alive]
        if present:
            raise JournalInUse(process=present[0].process, machine=present[0].machine)
        try:
            with self._connections.use() as connection, connection.transaction():
                connection.execute("SELECT FROM watchroom.tip FOR UPDATE")
                yield
        except psycopg.Error as error:
            raise translated(error) from error

    def retire(self) -> None:
        """See `MoveSide.retire`. Connected processes are also refused."""
        try:
            with self._connections.use() as connection:
                connection.execute(_RETIRE.encode())
        except psycopg.Error as error:
            raise translated(error) from error

    def close(self) -> None:
        self._connections.close()
        self._journal.close()
