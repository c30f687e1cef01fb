"""The sources of buffers by zone: private files, shared files, and files of tasks.

Other packages add sources through entry points of the group ``watchroom.sources``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, NamedTuple, TypeAlias, cast

from watchroom import validation
from watchroom.algorithms.editing import DataSource, SourceText, StaleSourceError
from watchroom.errors import NotFound, VersionConflict
from watchroom.features.boards.service import Boards
from watchroom.features.config.registry import Registry
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.files.service import PrivateFiles, SharedFiles
from watchroom.features.tasks.files import TaskFiles
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.kernel.zones import strip_owner
from watchroom.model import Row, Zone
from watchroom.platform.plugins import OfferedPlugin, load_plugins

GROUP: Final = "watchroom.sources"
FLUSH: Final = "flush_buffer"
"""The tool in rows of flushed versions."""
READ: Final = "read_buffer_source"
"""The tool in rows of reads, for sources without their own reading tool."""


@dataclass(frozen=True, slots=True)
class SourceServices:
    """The services that read and write sources."""

    registry: Registry
    private: PrivateFiles
    collab: SharedFiles
    boards: Boards
    files: TaskFiles
    reconciler: Reconciler


class BoundSource(NamedTuple):
    """A ``source`` whose rows are at ``path`` of ``zone``."""

    zone: Zone
    path: str
    source: DataSource

    @property
    def label(self) -> str:
        """The source as ``ZONE:PATH``. The path has the form that the agent uses."""
        return f"{self.zone}:{strip_owner(self.zone, self.path)}"


Opener: TypeAlias = Callable[[SourceServices, CallContext, str], BoundSource]
"""Returns the source at a path for a caller. The path is in the form that the caller uses. Raises
`WatchroomError`."""


def version_of(row: Row | None) -> int:
    """Return the version of ``row``, 0 for None."""
    return (row.version or 0) if row else 0


class OutsideEditOverlay:
    """The open external edit of a shared file or board with rows at ``path`` of ``zone``.

    The edit's text replaces the text of the current version, although it is not a version. ``services`` find
    the edit.
    """

    def __init__(self, services: SourceServices, zone: Zone, path: str) -> None:
        self._services = services
        self._zone = zone
        self._path = path

    def row_number(self) -> int:
        """Return the row number of the edit on disk, 0 if there is none. Raise the errors of
        `Reconciler.pending`."""
        edit = self._services.reconciler.pending(self._zone, self._path)
        return edit.seq if edit else 0

    def apply(self, current: SourceText) -> SourceText:
        """Return ``current`` with the text of the edit, if there is one."""
        number = self.row_number()
        return (
            SourceText(self._services.reconciler.text(number), current.version, number) if number else current
        )

    def check(self, known: int) -> None:
        """Raise `StaleSourceError` if the edit on disk is not the edit ``known``."""
        if self.row_number() != known:
            raise StaleSourceError


class FileSource:
    """A file with versions in the journal, as a `DataSource`.

    - ``current``: returns the row of the newest version, None if there is none.
    - ``read``: returns the text and the row of the newest version, which must exist.
    - ``write``: writes a text for an expected version, with a message. Returns the row. Raises
      `VersionConflict`.
    - ``edits``: external edits that are not versions; None if the zone records edits as versions.
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
        """Return the current version, 0 if there is none."""
        return version_of(self._current())

    def edit(self) -> int:
        """Return the row number of an external edit that is not a version yet, 0 if there is none."""
        return self._edits.row_number() if self._edits else 0

    def read(self) -> SourceText:
        """Return the current text with its version. Raise the errors of the service."""
        row = self._current()
        content = ""
        if row is not None and not row.deleted:
            content, row = self._read()
        found = SourceText(content, version_of(row))
        return self._edits.apply(found) if self._edits else found

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Write ``text`` as the next version. Return its number.

        - ``expected``: the current version.
        - ``message``: the message of the row.
        - ``edit``: the row of the current external edit, default 0 for none.

        Raise `StaleSourceError` if the current version or edit differs, and the errors of the service.
        """
        if self._edits:
            self._edits.check(edit)
        try:
            return version_of(self._write(text, expected, message))
        except VersionConflict as conflict:
            raise StaleSourceError from conflict


class RecordedSource:
    """The source with rows at ``path`` of ``zone``, opened again for each use.

    If the agent gets another task or role, the source may no longer be readable or writable. ``call``: the
    call that uses the source now.
    """

    def __init__(self, services: SourceServices, call: CallContext, zone: Zone, path: str) -> None:
        self._services = services
        self.call = call
        self._zone = zone
        self._path = path

    def version(self) -> int:
        """Return the current version, 0 if there is none."""
        return self._resolve().version()

    def edit(self) -> int:
        """Return the row number of an external edit that is not a version yet, 0 if there is none."""
        return self._resolve().edit()

    def read(self) -> SourceText:
        """Return the current text with its version. Raise `NotFound`, and the errors of the source."""
        return self._resolve().read()

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Write ``text`` as the next version. See `FileSource.write` for parameters and errors. Also raise
        `NotFound`."""
        return self._resolve().write(text, expected, message, edit=edit)

    def _resolve(self) -> DataSource:
        known = strip_owner(self._zone, self._path)
        bound = source_openers()[self._zone](self._services, self.call, known)
        if bound.path != self._path:
            raise NotFound(path=self._path, zone=self._zone)
        return bound.source


def _private(services: SourceServices, call: CallContext, path: str) -> BoundSource:
    """Return a private file, which only its owner and the owner's commands write."""
    zone, actor = services.private, call.actor
    services.registry.agent(actor)
    validation.check_path(path)
    current = partial(zone.current, actor, path)

    def write(text: str, expected: int, message: str) -> Row:
        if version_of(current()) != expected:
            raise StaleSourceError
        return zone.write(call.with_tool(FLUSH), actor, path, text, message=message, expected=expected)

    read = partial(zone.read, call.with_tool(READ), actor, path)
    return BoundSource("private", f"{actor}/{path}", FileSource(current, read, write))


def _collab(services: SourceServices, call: CallContext, path: str) -> BoundSource:
    """Return a shared file. A stale flush is recorded as a conflict."""
    zone = services.collab
    validation.check_path(path)

    def read() -> tuple[str, Row]:
        found = zone.read(call, path)
        return found.content, found.row

    def write(text: str, expected: int, message: str) -> Row:
        return zone.write(call.with_tool(FLUSH), path, text, expected, message=message)

    edits = OutsideEditOverlay(services, SHARED_FILE_ZONE, path)
    return BoundSource(SHARED_FILE_ZONE, path, FileSource(partial(zone.current, path), read, write, edits))


def _file(services: SourceServices, call: CallContext, path: str) -> BoundSource:
    """Return a file of the caller's task. Other agents of the task, and commands, also write there."""
    zone = services.files

    def write(text: str, expected: int, message: str) -> Row:
        return zone.write(call.with_tool(FLUSH), path, text, message=message, expected=expected)

    read = partial(zone.read, call.with_tool(READ), path)
    source = FileSource(partial(zone.current_row, call, path), read, write)
    return BoundSource("file", zone.row_path(call, path), source)


_OWN: Final[Mapping[str, Opener]] = {"private": _private, SHARED_FILE_ZONE: _collab, "file": _file}


@cache
def source_openers() -> Mapping[str, Opener]:
    """Return the functions that open sources, by zone."""
    return {**load_plugins(GROUP, _check).found, **_OWN}


def _check(offered: OfferedPlugin) -> Opener:
    if offered.name in _OWN:
        raise ValueError(f"Watchroom opens the files of the zone {offered.name} itself")
    if not callable(offered.value):
        raise ValueError(f"{type(offered.value).__name__} cannot be called")
    return cast("Opener", offered.value)
