"""Which config holds, as far as the rows tell that a fold has taken in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from watchroom.errors import ConfigInvalid, JournalDamaged
from watchroom.model import SET_BUDGET, Row, Zone
from watchroom.rules.config import Config, parse_recorded_config
from watchroom.rules.effects import SIGN_SETTINGS
from watchroom.rules.settings import (
    ZONE,
    apply_settings_row,
    find_unsigned,
    parse_settings,
    with_settings,
)

CONFIG_ZONES: tuple[Zone, ...] = ("config", ZONE)
_Content = Callable[[int], str | None]


class ConfigProjection:
    """Takes the rows of the config file and of signed settings in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_config": None, "_settings": None, "_is_read": False}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`): what the rows say
    is read again."""

    def __init__(self) -> None:
        self._written: Row | None = None
        """The newest version of the file that is valid."""
        self._signed: Row | None = None
        self._budgets: Row | None = None
        """The newest budget that was set since the settings were signed."""
        self._is_valid = True
        self._config: Config | None = None
        """What the file says; None where that was not read yet."""
        self._settings: Config | None = None
        self._is_read = False
        """Whether the settings are known."""

    def apply(self, row: Row, flaw: str, content: _Content) -> Config | None:
        """Take in ``row``, a version, which does not count where it has a ``flaw``; ``content`` reads a
        row's. Returns the config that holds after it, None where that is the one before."""
        try:
            if row.zone == "config":
                self._is_valid = False
                self._config = parse_recorded_config(row, content(row.seq))
                self._written, self._is_valid = row, True
            elif flaw or not self._take_settings(row, content):
                return None
        except (ConfigInvalid, JournalDamaged):
            # The last valid one holds until it is mended.
            return None
        written, settings = self._read(content)
        return with_settings(written, settings)

    def find_need(self, content: _Content) -> tuple[Row, tuple[str, ...]] | None:
        """The version of the file that says something else than the settings which hold, and in which of
        them; None where there is none."""
        try:
            written, settings = self._read(content)
        except (ConfigInvalid, JournalDamaged):
            # `verify` names a row whose content was damaged after it had counted.
            return None
        unsigned = find_unsigned(written, settings)
        return (self._written, unsigned) if unsigned and self._written is not None else None

    def contents_needed(self, row: Row) -> list[int]:
        """Return the numbers of the rows whose contents `apply` reads for ``row``."""
        if row.zone not in CONFIG_ZONES:
            return []
        # What a version of the settings changes is read with those that it changes.
        settings = (self._signed, self._budgets) if row.zone == ZONE or not self._is_read else ()
        known = (self._written if self._config is None else None, *settings)
        return [row.seq, *(each.seq for each in known if each is not None)]

    @property
    def is_valid(self) -> bool:
        """Whether the newest version of the file counts."""
        return self._is_valid

    def _take_settings(self, row: Row, content: _Content) -> bool:
        if not row.deleted:
            parse_settings(content(row.seq) or "")
        if row.tool == SIGN_SETTINGS:
            self._signed, self._budgets = (None if row.deleted else row), None
        elif row.tool == SET_BUDGET and self._signed is not None and not row.deleted:
            self._budgets = row
        else:
            return False
        self._is_read = False
        return True

    def _read(self, content: _Content) -> tuple[Config, Config | None]:
        """What the file says, and the settings that were signed."""
        if self._config is None:
            row = self._written
            self._config = Config() if row is None else parse_recorded_config(row, content(row.seq))
        if not self._is_read:
            self._settings, self._is_read = None, True
            for row in (self._signed, self._budgets):
                if row is not None:
                    self._settings = apply_settings_row(self._settings, row, content(row.seq))
        return self._config, self._settings
