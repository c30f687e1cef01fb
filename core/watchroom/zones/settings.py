"""The settings of a closed workspace: as people signed them, at a path of their own.

Before anybody is enrolled the config file has the settings, and whoever can write to it changes them. In a
closed workspace they are rows that owners signed; what the file says otherwise waits until one of them signs
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from watchroom.errors import ConfigInvalid, VersionConflict
from watchroom.model import Json, Row, Write
from watchroom.registry import CONFIG_HEAD, SETTINGS_HEAD
from watchroom.rules.config import Config
from watchroom.rules.effects import SIGN_SETTINGS
from watchroom.rules.settings import dump_settings, find_unsigned
from watchroom.zones.people import PeopleZone
from watchroom.zones.store import Store


class SettingsState(NamedTuple):
    """Where the settings stand that hold: the newest row of those that were ``signed`` (None: the file's
    hold), and in which of them the file says something else, ``unsigned``."""

    signed: Row | None
    unsigned: tuple[str, ...]


class SettingsZone:
    """The settings in ``store``; ``people`` says whose signature counts. May be used from any thread."""

    def __init__(self, store: Store, people: PeopleZone) -> None:
        self._store = store
        self._people = people
        store.registry.check_settings_with(people.find_flaw)

    def state(self) -> SettingsState:
        """Where the settings stand. Raises `JournalError`."""
        _, settings = self._store.registry.settings()
        if settings is None:
            return SettingsState(None, ())
        versions = reversed(self._store.journal.history(*SETTINGS_HEAD))
        signed = next((row for row in versions if not self._people.find_flaw(row)), None)
        return SettingsState(signed, find_unsigned(self._store.registry.written(), settings))

    def sign(self, actor: str) -> Row | None:
        """Have the settings hold, as ``actor``, that the config file says: in a closed workspace at their own
        path; in an open one the file's own, from now on. Returns the row; None where nothing changes. Raises
        `VersionConflict`, and what signing raises."""
        version, settings = self._store.registry.settings()
        written = self._store.registry.written()
        if not self._people.current().is_closed:
            return None if settings is None else self._write(actor, SIGN_SETTINGS, None, version)
        if settings is not None and not find_unsigned(written, settings):
            return None
        return self._write(actor, SIGN_SETTINGS, dump_settings(written), version)

    def change(
        self, actor: str, tool: str, change: Callable[[Config], Config], detail: dict[str, Json]
    ) -> Row | None:
        """Make of the settings what ``change`` makes of the config, as ``actor`` by ``tool``; the row has the
        ``detail``. Returns it; None where nothing changes. Raises `ConfigInvalid`, and what
        ``change`` and signing raise."""
        while True:
            version, settings = self._store.registry.settings()
            try:
                if settings is None:
                    return self._store.registry.change(
                        change,
                        lambda text, expected: self._append(
                            Write(actor, tool, *CONFIG_HEAD, text, expected=expected, detail=detail)
                        ),
                    )
                changed = change(self._store.registry.current())
                if not find_unsigned(changed, settings):
                    return None
                return self._write(actor, tool, dump_settings(changed), version, detail)
            except VersionConflict:
                continue

    def _write(
        self, actor: str, tool: str, text: str | None, version: int, detail: dict[str, Json] | None = None
    ) -> Row:
        return self._append(Write(actor, tool, *SETTINGS_HEAD, text, expected=version, detail=detail))

    def _append(self, draft: Write) -> Row:
        row, head = self._store.write(draft)
        if row.outcome == "conflict":
            raise VersionConflict(row, head, None, draft.content)
        if row.version is None:
            raise ConfigInvalid(problem=row.error)
        return row
