"""The version of each file that an agent saw last: the newest version that it read or wrote."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from watchroom.features.config.store import Store
from watchroom.features.trees.rows import BASELINE, READ, REPO, split_repo_path
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import get_list
from watchroom.kernel.rules.file_versions import IGNORED
from watchroom.model import Json, Row

_MAX_FILES: Final = 20_000
"""Maximum number of files kept in memory. Other files are read from rows."""
_MAX_VERSIONS: Final = 100
"""Maximum number of a file's newest versions that are searched for the agent's own."""
_LINES: Final = "lines"
"""The field of a note's detail with the ranges of lines that were read. Missing if all lines were read."""
_MAX_RANGES: Final = 100
Ranges: TypeAlias = tuple[tuple[int, int], ...]


class SeenVersion(NamedTuple):
    """A version that an agent saw.

    - ``version``: 0 for git's text.
    - ``lines``: the ranges of lines that it read (from 0, ends excluded), None for all.
    """

    version: int
    lines: Ranges | None = None


class SeenVersions:
    """The versions that agents saw, in rows, and in memory. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._known: OrderedDict[str, dict[str, SeenVersion]] = OrderedDict()
        """The versions that agents saw: by the path of the file's rows, then by agent."""

    def note(self, agent: str, path: str, version: int, lines: Ranges | None = None) -> None:
        """Record that ``agent`` read ``version`` of the file whose rows are at ``path``.

        ``lines``: the ranges of lines that it read (from 0, ends excluded), None for all.
        """
        known = self.find(agent, path)
        ranges = None if lines is None else lines[-_MAX_RANGES:]
        if known is not None and known.version == version:
            if known.lines is None or (ranges is not None and {*ranges} <= {*known.lines}):
                return
            ranges = None if ranges is None else (*known.lines, *ranges)[-_MAX_RANGES:]
        detail: dict[str, Json] | None = None
        if ranges is not None:
            detail = {_LINES: [[start, end] for start, end in ranges]}
        note = CallContext(agent, READ).note(REPO, path, base=version, detail=detail, durable=False)
        self._store.commits.note(note)
        self.keep(agent, path, SeenVersion(version, ranges))

    def note_ignored(self, agent: str, path: str, checksum: str, size: int) -> None:
        """Record that ``agent`` saw the ignored file at ``path``: its ``checksum`` (SHA-256, hex) and its
        ``size`` in bytes. The text is not kept."""
        detail: dict[str, Json] = {IGNORED: True, "sha256": checksum, "size": size}
        note = CallContext(agent, READ).note(REPO, path, detail=detail, durable=False)
        self._store.commits.note(note)

    def find_ignored(self, agent: str, path: str) -> Json:
        """Return the checksum of the ignored file at ``path`` when ``agent`` last saw it, None if the agent
        never saw it."""
        self._store.commits.flush(agent)
        note = self._store.journal.last_note(REPO, path, agent, READ)
        return note.detail.get("sha256") if note is not None and note.detail.get(IGNORED) is True else None

    def keep(self, agent: str, path: str, seen: SeenVersion) -> None:
        """Cache what ``agent`` saw. Rows already record it."""
        with self._lock:
            self._known.setdefault(path, {})[agent] = seen
            self._known.move_to_end(path)
            if len(self._known) > _MAX_FILES:
                self._known.popitem(last=False)

    def find(self, agent: str, path: str) -> SeenVersion | None:
        """Return the version that ``agent`` saw last of the file whose rows are at ``path``, None if it never
        saw it."""
        with self._lock:
            known = self._known.get(path, {}).get(agent)
        if known is None:
            known = self._read(agent, path)
            if known is not None:
                self.keep(agent, path, known)
        return None if known is None else self._from_baseline(path, known)

    def _read(self, agent: str, path: str) -> SeenVersion | None:
        self._store.commits.flush(agent)
        journal = self._store.journal
        note = journal.last_note(REPO, path, agent, READ)
        read = None
        if note is not None and note.base is not None:
            read = SeenVersion(note.base, _read_ranges(note))
        head = journal.head(REPO, path)
        after = max(0, (head.version or 0) - _MAX_VERSIONS) if head is not None else 0
        versions = journal.history(REPO, path, after_version=after) if head is not None else []
        own = max((row.version or 0 for row in versions if row.actor == agent), default=0)
        return SeenVersion(own) if own and (read is None or own >= read.version) else read

    def _from_baseline(self, path: str, known: SeenVersion) -> SeenVersion:
        """Return ``known`` with version 1 instead of 0 if version 1 is git's text."""
        if known.version:
            return known
        first = self._store.journal.version(REPO, path, 1)
        return known._replace(version=1) if first is not None and first.tool == BASELINE else known

    def who_saw_before(self, row: Row) -> list[tuple[str, SeenVersion]]:
        """Return the agents that saw a version of the file before ``row``, each with that version. Leave out
        the author of ``row``."""
        with self._lock:
            known = [*self._known.get(row.path, {}).items()]
        return [
            (agent, seen) for agent, seen in known if agent != row.actor and seen.version < (row.version or 0)
        ]


def _read_ranges(note: Row) -> Ranges | None:
    if _LINES not in note.detail:
        return None
    pairs = [each for each in get_list(note.detail, _LINES) if isinstance(each, list) and len(each) == 2]
    return tuple((one, end) for one, end in pairs if isinstance(one, int) and isinstance(end, int))


def name_of(path: str) -> str:
    """Return the name in its tree of the file whose rows are at ``path``."""
    return split_repo_path(path)[1]
