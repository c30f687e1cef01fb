"""Searches the index, and keeps it up to date with the journal."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from hashlib import sha256
from threading import Event, Lock
from typing import Final, NamedTuple

from watchroom.errors import InvalidSearch
from watchroom.history.search.database import (
    DamagedIndexError,
    IndexDatabase,
    IndexedRow,
    IndexState,
    IndexWriter,
)
from watchroom.history.search.excerpts import make_excerpts
from watchroom.history.search.passages import Passage, PassageReader
from watchroom.history.search.query import (
    GAP,
    MAX_HITS,
    SearchQuery,
    actor_token,
    match_all,
    match_any,
    separate,
    zone_token,
)
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.checkout.location import cached_checkout
from watchroom.kernel.journal import Journal, is_server_address
from watchroom.kernel.zones import DOCUMENTS
from watchroom.model import Row

CLAIM: Final = "search"
"""The claim of the process that writes the index. On a server, there is a claim for each folder."""
RANKED_HITS: Final = 10_000
"""Maximum number of newest hits that are ranked."""
SHARE: Final = 0.2
"""The fraction of a core that background indexing uses."""
_ROUND_SECONDS: Final = 5.0
"""Maximum seconds of a round, because other slow work of the process must wait."""
_SEARCH_SECONDS: Final = 2.0
"""Timeout of a search in seconds."""
_ROUNDS: Final = 3
"""A process stops indexing after this number of rounds without new rows. Another process starts indexing
after this number of rounds without progress."""
_BATCH_ROWS: Final = 200
_BATCH_CHARACTERS: Final = 300_000
_LAST_ROW: Final = 2**62


class Hit(NamedTuple):
    """A row that was found.

    - ``excerpt``: a part of the journal's own text.
    - ``matches``: the matching places in the excerpt, each with start and end.
    - ``line``: the line of the first match in the row's text, from 1; 0 if the text has no lines.
    """

    row: Row
    excerpt: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


class SearchResult(NamedTuple):
    """The result of a search.

    - ``hits``: the hits, in the order of the query.
    - ``indexed``: the last row that was searched.
    - ``last``: the newest row of the journal.
    - ``oldest``: the first row that was searched.
    - ``has_more``: whether there are more hits than the query's limit.
    - ``is_cut_off``: whether the search timed out before all hits were found.
    """

    hits: tuple[Hit, ...] = ()
    indexed: int = 0
    last: int = 0
    oldest: int = 1
    has_more: bool = False
    is_cut_off: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether there are rows that the index does not have yet."""
        return self.indexed < self.last


class SearchIndex:
    """The index of the workspace with the state folder ``folder``. May be used from any thread."""

    def __init__(self, folder: str, database: IndexDatabase | None = None) -> None:
        self._folder = os.path.abspath(folder)
        self._database = database or IndexDatabase(self._folder)
        self._complete = 0
        """The row up to which the index was complete at its last write."""
        self._working = Lock()
        self._reader: PassageReader | None = None
        """Set while this process indexes. It caches documents at their last rows, because reading them from
        their first version is slow."""
        self._idle_rounds = 0
        self._stalled_rounds = 0

    def search(self, journal: Journal, query: SearchQuery) -> SearchResult:
        """Search the indexed rows of ``journal``. Raise `JournalError`, and `InvalidSearch` if ``query`` has
        no words, or too many."""
        expression = match_all(query)
        if not 1 <= query.limit <= MAX_HITS:
            raise InvalidSearch(rule="search_limit")
        last = journal.last_seq()
        until = _LAST_ROW if query.until is None else min(query.until, _LAST_ROW)
        deadline = time.monotonic() + _SEARCH_SECONDS
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
        # Rows that are newer than `last` may already be indexed.
        return SearchResult(hits, state.seq, max(last, state.seq), state.oldest, has_more, found.is_cut_off)

    def _hits(
        self, journal: Journal, query: SearchQuery, numbers: list[int], kept: Mapping[int, str]
    ) -> tuple[Hit, ...]:
        # Rows that this person may no longer read are not hits.
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
        """Index the missing rows of ``journal`` unless another process does. Return the last indexed row.
        Raise `JournalError`.

        - ``closing``: stops the work when set.
        - ``share``: the fraction of a core to use, default 0.2.
        - ``seconds``: the timeout, default none.
        """
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
        """Index the new rows of ``journal`` until ``closing`` is set. Call this every few seconds.

        Every process calls this, and one of them indexes. Another process takes over after three rounds
        without progress. Raise `JournalError`.
        """
        with self._working:
            before, last = self._complete, journal.last_seq()
            # Most rounds have no new rows, so do not open the index for them.
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
                self._index(journal, _Pace(closing, SHARE, _ROUND_SECONDS), self._reader)

    def _indexed(self) -> int:
        """Return the last indexed row, according to the index."""
        try:
            self._complete = self._state().seq
        except DamagedIndexError:
            self._complete = 0
        return self._complete

    def _index(self, journal: Journal, pace: _Pace, passages: PassageReader) -> int:
        """Index the missing rows unless another process does. Return the last indexed row."""
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
            # The index belongs to another journal, or this person may now read less than before.
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
        """Return the key of the claim. On a server, each folder of a journal has an index."""
        return f"{CLAIM} {platform.node()} {self._folder}" if journal.is_shared else CLAIM


class _Pace:
    """Limits work to ``share`` of a core, until ``closing`` is set or ``seconds`` have passed."""

    def __init__(self, closing: Event, share: float, seconds: float | None) -> None:
        self._closing = closing
        self._rest = 1 / share - 1
        self._deadline = float("inf") if seconds is None else time.monotonic() + seconds

    @property
    def is_running(self) -> bool:
        return not self._closing.is_set() and time.monotonic() < self._deadline

    def rest(self, worked: float) -> None:
        """Pause after ``worked`` seconds of work."""
        self._closing.wait(self._rest * worked)


def open_index(root: str | os.PathLike[str]) -> SearchIndex:
    """Return the index of the workspace in the folder ``root``, or at the address ``root``
    (``postgresql://…``).

    The index of a workspace on a server is in the folder with its files, in this user's cache.
    """
    path = os.fspath(root)
    return SearchIndex(os.path.join(cached_checkout(path) if is_server_address(path) else path, CONTROL))


def _add_rows(journal: Journal, passages: PassageReader, writer: IndexWriter) -> bool:
    """Index the next rows. Return whether there were any rows."""
    entries: list[IndexedRow] = []
    last: Row | None = None
    size = 0
    for row in journal.rows(writer.state().seq, limit=_BATCH_ROWS):
        found = passages.read(row)
        text = f" {GAP} ".join(separate(each.text) for each in found)
        if text:
            # Reading a document at an earlier version needs its whole history.
            kept = json.dumps(found, ensure_ascii=False) if row.zone in DOCUMENTS else ""
            entries.append(
                IndexedRow(row.seq, text, f"{actor_token(row.actor)} {zone_token(row.zone)}", kept)
            )
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
