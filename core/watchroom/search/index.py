"""Searches the index, and keeps it up with the journal."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from hashlib import sha256
from threading import Event, Lock
from typing import Final

from watchroom.checkout.layout import CONTROL
from watchroom.checkout.location import cached_checkout
from watchroom.errors import InvalidSearch
from watchroom.journal import Journal, is_server_address
from watchroom.model import Row
from watchroom.search.added_lines import Passage
from watchroom.search.database import DamagedIndexError, Entry, IndexDatabase, IndexState, IndexWriter
from watchroom.search.deadline import Deadline
from watchroom.search.excerpts import make_excerpts
from watchroom.search.passages import PassageReader
from watchroom.search.query import (
    GAP,
    MOST_HITS,
    SearchQuery,
    actor_token,
    match_all,
    match_any,
    separate,
    zone_token,
)
from watchroom.search.result import Hit, SearchResult

CLAIM: Final = "search"
"""Whoever has claimed this keeps the index; where the journal is on a server, that of one folder."""
RANKED_HITS: Final = 10_000
"""So many of the newest hits are ranked."""
SHARE: Final = 0.2
"""Of a core is used to keep the index, unless somebody waits for it."""
_SECONDS: Final = 2.0
"""For the index to answer."""
_ROUNDS: Final = 3
"""After so many rounds in which nothing was left to index, or others did it, an index keeps up no more; and
after so many in which nobody did it, it does."""
_BATCH_ROWS: Final = 200
_BATCH_CHARACTERS: Final = 300_000
_LAST_ROW: Final = 2**62


class SearchIndex:
    """The index of the workspace whose state folder is ``folder``. May be used from any thread."""

    def __init__(self, folder: str, database: IndexDatabase | None = None) -> None:
        self._folder = os.path.abspath(folder)
        self._database = database or IndexDatabase(self._folder)
        self._complete = 0
        """Up to which row nothing was missing the last time."""
        self._working = Lock()
        self._reader: PassageReader | None = None
        """Of the index that keeps up. It holds documents as they were at the last rows: they take long to
        make from their first version."""
        self._idle_rounds = 0
        self._stalled_rounds = 0

    def search(self, journal: Journal, query: SearchQuery) -> SearchResult:
        """What ``query`` finds in ``journal``, as far as it is indexed. Raises `InvalidSearch` for a query
        that names no words, or too many, and `JournalError`."""
        expression = match_all(query)
        if not 1 <= query.limit <= MOST_HITS:
            raise InvalidSearch(rule="search_limit")
        last = journal.last_seq()
        until = _LAST_ROW if query.until is None else min(query.until, _LAST_ROW)
        deadline = Deadline(_SECONDS)
        try:
            with self._database.reading() as reader:
                if reader is None:
                    return SearchResult(last=last)
                state = reader.state()
                after, wanted = max(0, query.after), query.limit + 1
                if query.order == "best":
                    found = reader.best(expression, after, until, RANKED_HITS, wanted, deadline)
                else:
                    found = reader.newest(expression, after, until, wanted, deadline)
                kept = reader.kept(found.rows)
        except DamagedIndexError:
            return SearchResult(last=last)
        hits = self._hits(journal, query, found.rows[: query.limit], kept)
        has_more = len(found.rows) > query.limit
        # Rows that came since may be indexed already.
        return SearchResult(hits, state.seq, max(last, state.seq), state.oldest, has_more, found.is_cut_off)

    def _hits(
        self, journal: Journal, query: SearchQuery, numbers: list[int], kept: Mapping[int, str]
    ) -> tuple[Hit, ...]:
        # What this person may not read any more is no hit.
        rows = [row for row in map(journal.row, numbers) if row is not None]
        reader = PassageReader(journal)
        passages = [_load_passages(kept[row.seq]) if row.seq in kept else reader.read(row) for row in rows]
        excerpts = make_excerpts(match_any(query), passages)
        return tuple(
            Hit(row, each.text, each.matches, each.line) for row, each in zip(rows, excerpts, strict=True)
        )

    def index_missing(
        self, journal: Journal, closing: Event, *, share: float = SHARE, seconds: float | None = None
    ) -> int:
        """Index what is missing of ``journal``, if nobody else does: with ``share`` of a core, until
        ``closing`` is set or ``seconds`` have passed. Returns up to which row nothing is missing then. Raises
        `JournalError`."""
        last = journal.last_seq()
        if last == self._complete and self._database.exists:
            return last
        if not self._working.acquire(blocking=False):
            return self._indexed()
        try:
            return self._index(
                journal, _Pace(closing, share, seconds), self._reader or PassageReader(journal)
            )
        finally:
            self._working.release()

    def keep_up(self, journal: Journal, closing: Event) -> None:
        """Index the rows of ``journal`` that came since the last round, until ``closing`` is set: for whoever
        calls this every few seconds, in every process. Of these one does it, and another one once that one
        did nothing for some rounds. Raises `JournalError`."""
        with self._working:
            before, last = self._complete, journal.last_seq()
            # At rest, which is most of the time, the index need not be opened to know that.
            reached = before if before == last and self._database.exists else self._indexed()
            is_complete = reached == last and self._database.exists
            if is_complete or reached != before:
                self._idle_rounds, self._stalled_rounds = self._idle_rounds + 1, 0
            else:
                self._idle_rounds, self._stalled_rounds = 0, self._stalled_rounds + 1
            if self._idle_rounds >= _ROUNDS:
                self._reader = None
            elif self._stalled_rounds >= _ROUNDS and self._reader is None:
                self._reader = PassageReader(journal)
            if self._reader is not None and not is_complete:
                self._index(journal, _Pace(closing, SHARE, None), self._reader)

    def _indexed(self) -> int:
        """Up to which row nothing was missing when the index was last written."""
        try:
            self._complete = self._state().seq
        except DamagedIndexError:
            self._complete = 0
        return self._complete

    def _index(self, journal: Journal, pace: _Pace, passages: PassageReader) -> int:
        """Index what is missing, if nobody else does, and return up to which row nothing is."""
        with journal.claim(self._claim(journal)) as is_claimed:
            if not is_claimed:
                return self._indexed()
            try:
                self._complete = self._follow(journal, pace, passages)
            except DamagedIndexError:
                self._complete = self._follow(journal, pace, passages)
            return self._complete

    def _follow(self, journal: Journal, pace: _Pace, passages: PassageReader) -> int:
        state = self._state()
        row = journal.row(state.seq) if state.seq else None
        if state.seq and (row is None or _digest(row) != state.digest):
            # It is of another journal, or this person may read less than before.
            self._database.delete()
        with self._database.writing() as writer:
            while not writer.is_lost and pace.is_running:
                began = time.monotonic()
                if not _add_rows(journal, passages, writer):
                    break
                pace.rest(time.monotonic() - began)
            return writer.state().seq

    def _state(self) -> IndexState:
        with self._database.reading() as reader:
            return IndexState() if reader is None else reader.state()

    def _claim(self, journal: Journal) -> str:
        """Each folder has an index of its own, and a journal on a server has folders on many machines."""
        return f"{CLAIM} {platform.node()} {self._folder}" if journal.is_shared else CLAIM


class _Pace:
    """Goes on until ``closing`` is set or ``seconds`` have passed, with ``share`` of a core."""

    def __init__(self, closing: Event, share: float, seconds: float | None) -> None:
        self._closing = closing
        self._rest = 1 / share - 1
        self._deadline = None if seconds is None else Deadline(seconds)

    @property
    def is_running(self) -> bool:
        return not self._closing.is_set() and not (self._deadline and self._deadline.is_over())

    def rest(self, worked: float) -> None:
        """Rest after having ``worked`` so many seconds."""
        self._closing.wait(self._rest * worked)


def open_index(root: str | os.PathLike[str]) -> SearchIndex:
    """The index of the workspace in the folder ``root``, or at that address (``postgresql://…``): then it is
    in the folder that this user's processes have its files in."""
    path = os.fspath(root)
    return SearchIndex(os.path.join(cached_checkout(path) if is_server_address(path) else path, CONTROL))


def _add_rows(journal: Journal, passages: PassageReader, writer: IndexWriter) -> bool:
    """Index the next rows; whether there were any."""
    entries: list[Entry] = []
    last: Row | None = None
    size = 0
    for row in journal.rows(writer.state().seq, limit=_BATCH_ROWS):
        said = passages.read(row)
        text = f" {GAP} ".join(separate(each.text) for each in said)
        if text:
            # A document at an earlier version takes its whole history.
            kept = json.dumps(said, ensure_ascii=False) if row.zone == "realtime" else ""
            entries.append(Entry(row.seq, text, f"{actor_token(row.actor)} {zone_token(row.zone)}", kept))
        last, size = row, size + len(text)
        if size > _BATCH_CHARACTERS:
            break
    if last is not None:
        writer.add(entries, last.seq, _digest(last))
    return last is not None


def _load_passages(kept: str) -> tuple[Passage, ...]:
    return tuple(Passage(text, line) for text, line in json.loads(kept))


def _digest(row: Row) -> str:
    return sha256(repr(row).encode("utf-8", "surrogatepass")).hexdigest()
