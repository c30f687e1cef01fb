"""What a buffer can be bound to: a private file, a shared file, a file of a task, and what other packages
bring through an entry point of the group ``watchroom.sources``, by zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Final, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.editing import DataSource, SourceText, StaleSourceError
from watchroom.errors import NotFound, VersionConflict
from watchroom.model import Row, Zone
from watchroom.registry import Registry
from watchroom.zones.boards import BoardZone
from watchroom.zones.buffers.record import known_path
from watchroom.zones.collab import CollabZone
from watchroom.zones.outside import OutsideEdits
from watchroom.zones.private import PrivateZone
from watchroom.zones.task_files import TaskFiles

GROUP: Final = "watchroom.sources"
FLUSH: Final = "flush_buffer"
"""The tool of the versions that a flush makes."""
READ: Final = "read_buffer_source"
"""The tool of the readings of sources that have no reading tool of their own."""


@dataclass(frozen=True, slots=True)
class SourceZones:
    """Where sources are."""

    registry: Registry
    private: PrivateZone
    collab: CollabZone
    boards: BoardZone
    files: TaskFiles
    outside: OutsideEdits


class BoundSource(NamedTuple):
    """A source, and where it has its rows."""

    zone: Zone
    path: str
    source: DataSource

    @property
    def place(self) -> str:
        """As its agent is told of it."""
        return f"{self.zone}:{known_path(self.zone, self.path)}"


Opener: TypeAlias = Callable[[SourceZones, str, str], BoundSource]
"""Finds the source of an agent (its id) by the path that the agent knows it by. Raises `WatchroomError`."""


def versions_of(row: Row | None) -> int:
    return (row.version or 0) if row else 0


class PrivateSource:
    """A file of the agent's own zone. Nobody but its owner and its commands write there."""

    def __init__(self, zone: PrivateZone, owner: str, filename: str) -> None:
        self._zone = zone
        self._owner = owner
        self._filename = filename

    def version(self) -> int:
        return versions_of(self._zone.current(self._owner, self._filename))

    def edit(self) -> int:
        """Never: here, an edit made by hand is a version."""
        return 0

    def read(self) -> SourceText:
        row = self._zone.current(self._owner, self._filename)
        if row is None or row.deleted:
            return SourceText("", versions_of(row))
        content, row = self._zone.read(self._owner, self._owner, self._filename, tool=READ)
        return SourceText(content, versions_of(row))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        if self.version() != expected:
            raise StaleSourceError
        try:
            row = self._zone.write(
                self._owner,
                self._owner,
                self._filename,
                text,
                tool=FLUSH,
                message=message,
                expected=expected,
            )
        except VersionConflict as conflict:
            raise StaleSourceError from conflict
        return versions_of(row)


class OutsideEditOverlay:
    """The edits of a shared file or board that nobody has settled yet: its text is theirs, though they make
    no version."""

    def __init__(self, places: SourceZones, zone: Zone, path: str) -> None:
        self._places = places
        self._zone = zone
        self._path = path

    def number(self) -> int:
        """The row of the edit that stands on disk, 0 if none does. Raises what `OutsideEdits.pending`
        raises."""
        edit = self._places.outside.pending(self._zone, self._path)
        return edit.seq if edit else 0

    def over(self, current: SourceText) -> SourceText:
        """What stands there: the edit's text, or ``current`` where nobody has edited it."""
        number = self.number()
        return SourceText(self._places.outside.text(number), current.version, number) if number else current

    def check(self, known: int) -> None:
        """Raises `StaleSourceError` if another edit stands there than the one that is ``known``."""
        if self.number() != known:
            raise StaleSourceError


class CollabSource:
    """A shared file, written by compare-and-swap: what comes too late stays as a conflict's row."""

    def __init__(self, places: SourceZones, actor: str, path: str) -> None:
        self._zone = places.collab
        self._edits = OutsideEditOverlay(places, "collab", path)
        self._actor = actor
        self._path = path

    def version(self) -> int:
        return versions_of(self._zone.current(self._path))

    def edit(self) -> int:
        return self._edits.number()

    def read(self) -> SourceText:
        row = self._zone.current(self._path)
        if row is None or row.deleted:
            return self._edits.over(SourceText("", versions_of(row)))
        found = self._zone.read(self._actor, self._path)
        return self._edits.over(SourceText(found.content, versions_of(found.row)))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        self._edits.check(edit)
        try:
            row = self._zone.write(self._actor, self._path, text, expected, tool=FLUSH, message=message)
        except VersionConflict as conflict:
            raise StaleSourceError from conflict
        return versions_of(row)


class FileSource:
    """A file of the task that the agent works on; the others of the task, and commands, write there, too."""

    def __init__(self, files: TaskFiles, actor: str, path: str) -> None:
        self._files = files
        self._actor = actor
        self._path = path

    def version(self) -> int:
        return versions_of(self._files.current_row(self._actor, self._path))

    def edit(self) -> int:
        """Never: here, an edit made by hand is a version."""
        return 0

    def read(self) -> SourceText:
        row = self._files.current_row(self._actor, self._path)
        if row is None or row.deleted:
            return SourceText("", versions_of(row))
        content, row = self._files.read(self._actor, self._path, tool=READ)
        return SourceText(content, versions_of(row))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        try:
            row = self._files.write(
                self._actor, self._path, text, tool=FLUSH, message=message, expected=expected
            )
        except VersionConflict as conflict:
            raise StaleSourceError from conflict
        return versions_of(row)


class KnownSource:
    """What a buffer was opened from, by where it has its rows. Its agent may have been moved meanwhile, to
    another task or another place in the team: then it can be neither read nor written, until it is back."""

    def __init__(self, places: SourceZones, actor: str, zone: Zone, path: str) -> None:
        self._places = places
        self._actor = actor
        self._zone = zone
        self._path = path

    def version(self) -> int:
        return self._found().version()

    def edit(self) -> int:
        return self._found().edit()

    def read(self) -> SourceText:
        return self._found().read()

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        return self._found().write(text, expected, message, edit=edit)

    def _found(self) -> DataSource:
        known = known_path(self._zone, self._path)
        bound = openers()[self._zone](self._places, self._actor, known)
        if bound.path != self._path:
            raise NotFound(path=self._path, zone=self._zone)
        return bound.source


def _private(places: SourceZones, actor: str, path: str) -> BoundSource:
    places.registry.agent(actor)
    validation.check_path(path)
    return BoundSource("private", f"{actor}/{path}", PrivateSource(places.private, actor, path))


def _collab(places: SourceZones, actor: str, path: str) -> BoundSource:
    validation.check_path(path)
    return BoundSource("collab", path, CollabSource(places, actor, path))


def _file(places: SourceZones, actor: str, path: str) -> BoundSource:
    return BoundSource("file", places.files.row_path(actor, path), FileSource(places.files, actor, path))


_OWN: Final[Mapping[str, Opener]] = {"private": _private, "collab": _collab, "file": _file}


@cache
def openers() -> Mapping[str, Opener]:
    """How a source is found, by the zone that it is in."""
    found = dict(_OWN)
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        if point.name in found:
            raise TypeError(f"{point.value} brings sources of a zone that has some already: {point.name}")
        found[point.name] = point.load()
    return found
