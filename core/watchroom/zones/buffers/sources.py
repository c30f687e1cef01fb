"""The sources of buffers by zone: a private file, a shared file, a file of a task, and what other packages
add through an entry point of the group ``watchroom.sources``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Final, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.checkout.reconciler import Reconciler
from watchroom.editing import DataSource, SourceText, StaleSourceError
from watchroom.errors import NotFound, VersionConflict
from watchroom.model import Row, Zone
from watchroom.registry import Registry
from watchroom.rules.buffers import agent_path
from watchroom.zones.boards import BoardZone
from watchroom.zones.collab import CollabZone
from watchroom.zones.private import PrivateZone
from watchroom.zones.task_files import TaskFiles

GROUP: Final = "watchroom.sources"
FLUSH: Final = "flush_buffer"
"""The tool of the versions that a flush makes."""
READ: Final = "read_buffer_source"
"""The tool of the readings of sources that have no reading tool of their own."""


@dataclass(frozen=True, slots=True)
class SourceZones:
    """The zones in which sources are."""

    registry: Registry
    private: PrivateZone
    collab: CollabZone
    boards: BoardZone
    files: TaskFiles
    reconciler: Reconciler


class BoundSource(NamedTuple):
    """A ``source`` that has its rows at ``path`` of ``zone``."""

    zone: Zone
    path: str
    source: DataSource

    @property
    def label(self) -> str:
        """``ZONE:PATH`` with the path as its agent knows it."""
        return f"{self.zone}:{agent_path(self.zone, self.path)}"


Opener: TypeAlias = Callable[[SourceZones, str, str], BoundSource]
"""Finds the source of an agent (its id) by the path that the agent knows it by. Raises `WatchroomError`."""


def version_of(row: Row | None) -> int:
    """The version of ``row``, 0 for None."""
    return (row.version or 0) if row else 0


class OutsideEditOverlay:
    """The unsettled edits made by hand of a shared file or board, which has its rows at ``path`` of ``zone``:
    their text replaces the current version's, though they make no version. ``zones`` finds them."""

    def __init__(self, zones: SourceZones, zone: Zone, path: str) -> None:
        self._zones = zones
        self._zone = zone
        self._path = path

    def row_number(self) -> int:
        """The row of the edit that is on disk, 0 if there is none. Raises what `Reconciler.pending`
        raises."""
        edit = self._zones.reconciler.pending(self._zone, self._path)
        return edit.seq if edit else 0

    def apply(self, current: SourceText) -> SourceText:
        """``current`` with the edit's text, if there is an edit."""
        number = self.row_number()
        return SourceText(self._zones.reconciler.text(number), current.version, number) if number else current

    def check(self, known: int) -> None:
        """Raises `StaleSourceError` if the edit on disk is another one than ``known``."""
        if self.row_number() != known:
            raise StaleSourceError


class FileSource:
    """A file with versions in the journal, as a `DataSource`.

    ``current`` returns the row of the newest version, None where there is none; ``read`` the text of the
    newest version, which exists, and its row. ``write`` takes a text, the expected version and a message, and
    returns the row of the version that it makes; it raises `VersionConflict`. ``edits`` are those made by
    hand, where they are no versions.
    """

    def __init__(
        self,
        current: Callable[[], Row | None],
        read: Callable[[], tuple[str, Row | None]],
        write: Callable[[str, int, str], Row],
        edits: OutsideEditOverlay | None = None,
    ) -> None:
        self._current = current
        self._read = read
        self._write = write
        self._edits = edits

    def version(self) -> int:
        """The current version, 0 if there is none."""
        return version_of(self._current())

    def edit(self) -> int:
        """The row of an edit made by hand that is no version yet, 0 if there is none."""
        return self._edits.row_number() if self._edits else 0

    def read(self) -> SourceText:
        """The current text with its version. Raises what the zone raises."""
        row = self._current()
        content = ""
        if row is not None and not row.deleted:
            content, row = self._read()
        found = SourceText(content, version_of(row))
        return self._edits.apply(found) if self._edits else found

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Write ``text`` with ``message`` as the next version, if ``expected`` is the current one and
        ``edit`` the current edit; returns its number. Raises `StaleSourceError`, and what the zone raises."""
        if self._edits:
            self._edits.check(edit)
        try:
            return version_of(self._write(text, expected, message))
        except VersionConflict as conflict:
            raise StaleSourceError from conflict


class RecordedSource:
    """The source of ``actor`` that has its rows at ``path`` of ``zone``, found in ``zones`` anew for each
    use. Its agent may have been moved to another task or another role meanwhile: then it can be neither read
    nor written, until it is back."""

    def __init__(self, zones: SourceZones, actor: str, zone: Zone, path: str) -> None:
        self._zones = zones
        self._actor = actor
        self._zone = zone
        self._path = path

    def version(self) -> int:
        """The current version, 0 if there is none."""
        return self._resolve().version()

    def edit(self) -> int:
        """The row of an edit made by hand that is no version yet, 0 if there is none."""
        return self._resolve().edit()

    def read(self) -> SourceText:
        """The current text with its version. Raises `NotFound`, and what the source raises."""
        return self._resolve().read()

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """As `FileSource.write`: ``text``, the version that is ``expected``, a ``message``, and the ``edit``.
        Raises `NotFound` as well."""
        return self._resolve().write(text, expected, message, edit=edit)

    def _resolve(self) -> DataSource:
        known = agent_path(self._zone, self._path)
        bound = source_openers()[self._zone](self._zones, self._actor, known)
        if bound.path != self._path:
            raise NotFound(path=self._path, zone=self._zone)
        return bound.source


def _private(zones: SourceZones, actor: str, path: str) -> BoundSource:
    """A private file: its owner writes there alone, with its commands."""
    zone = zones.private
    zones.registry.agent(actor)
    validation.check_path(path)
    current = partial(zone.current, actor, path)

    def write(text: str, expected: int, message: str) -> Row:
        if version_of(current()) != expected:
            raise StaleSourceError
        return zone.write(actor, actor, path, text, tool=FLUSH, message=message, expected=expected)

    read = partial(zone.read, actor, actor, path, tool=READ)
    return BoundSource("private", f"{actor}/{path}", FileSource(current, read, write))


def _collab(zones: SourceZones, actor: str, path: str) -> BoundSource:
    """A shared file. A flush that comes too late stays as a conflict's row."""
    zone = zones.collab
    validation.check_path(path)

    def read() -> tuple[str, Row]:
        found = zone.read(actor, path)
        return found.content, found.row

    def write(text: str, expected: int, message: str) -> Row:
        return zone.write(actor, path, text, expected, tool=FLUSH, message=message)

    edits = OutsideEditOverlay(zones, "collab", path)
    return BoundSource("collab", path, FileSource(partial(zone.current, path), read, write, edits))


def _file(zones: SourceZones, actor: str, path: str) -> BoundSource:
    """A file of the task that an agent works on. Other agents of the task, and commands, write there too."""
    zone = zones.files

    def write(text: str, expected: int, message: str) -> Row:
        return zone.write(actor, path, text, tool=FLUSH, message=message, expected=expected)

    read = partial(zone.read, actor, path, tool=READ)
    source = FileSource(partial(zone.current_row, actor, path), read, write)
    return BoundSource("file", zone.row_path(actor, path), source)


_OWN: Final[Mapping[str, Opener]] = {"private": _private, "collab": _collab, "file": _file}


@cache
def source_openers() -> Mapping[str, Opener]:
    """For each zone the function that finds a source in it."""
    found = dict(_OWN)
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        if point.name in found:
            raise TypeError(f"{point.value} brings sources of a zone that has some already: {point.name}")
        found[point.name] = point.load()
    return found
