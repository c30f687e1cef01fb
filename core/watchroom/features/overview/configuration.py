"""The configuration in effect after the applied rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from watchroom.errors import ConfigInvalid, JournalDamaged
from watchroom.features.config.rows import (
    SETTINGS_ZONE,
    Config,
    apply_settings_row,
    find_unsigned,
    parse_recorded_config,
    parse_settings,
    with_settings,
)
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.model import SET_BUDGET, Row, Zone

CONFIG_ZONES: tuple[Zone, ...] = ("config", SETTINGS_ZONE)
_Content = Callable[[int], str | None]


class ConfigProjection:
    """The configuration in effect. Takes the rows of the config file and of signed settings in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_config": None, "_settings": None, "_is_read": False}
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`). They are read
    again from the rows."""

    def __init__(self) -> None:
        self._written: Row | None = None
        """The newest valid version of the config file."""
        self._signed: Row | None = None
        self._budgets: Row | None = None
        """The newest budget row since the settings were signed."""
        self._is_valid = True
        self._config: Config | None = None
        """The config of the newest valid version, None if it was not read yet."""
        self._settings: Config | None = None
        self._is_read = False
        """Whether the signed settings were read."""

    def apply(self, row: Row, flaw: str, content: _Content) -> Config | None:
        """Apply ``row``, a version of the config file or of the settings. Return the new config, None if it
        did not change.

        - ``flaw``: if not empty, the version does not count.
        - ``content``: returns the content of a row.
        """
        try:
            if row.zone == "config":
                self._is_valid = False
                self._config = parse_recorded_config(row, content(row.seq))
                self._written, self._is_valid = row, True
            elif flaw or not self._take_settings(row, content):
                return None
        except (ConfigInvalid, JournalDamaged):
            # The last valid version stays in effect until the file is corrected.
            return None
        written, settings = self._read(content)
        return with_settings(written, settings)

    def find_unsigned(self, content: _Content) -> tuple[Row, tuple[str, ...]] | None:
        """Return the version of the config file if it differs from the signed settings, and the names of the
        settings that differ. None if there is no difference.

        ``content``: returns the content of a row.
        """
        try:
            written, settings = self._read(content)
        except (ConfigInvalid, JournalDamaged):
            # `verify` reports a row whose content was damaged after it took effect.
            return None
        unsigned = find_unsigned(written, settings)
        return (self._written, unsigned) if unsigned and self._written is not None else None

    def contents_needed(self, row: Row) -> list[int]:
        """Return the numbers of the rows whose contents `apply` reads for ``row``."""
        if row.zone not in CONFIG_ZONES:
            return []
        # Read the content of a new version together with the contents that it is compared with.
        settings = (self._signed, self._budgets) if row.zone == SETTINGS_ZONE or not self._is_read else ()
        known = (self._written if self._config is None else None, *settings)
        return [row.seq, *(each.seq for each in known if each is not None)]

    @property
    def is_valid(self) -> bool:
        """Whether the newest version of the file is valid."""
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
        """Return the config of the file, and the signed settings."""
        if self._config is None:
            row = self._written
            self._config = Config() if row is None else parse_recorded_config(row, content(row.seq))
        if not self._is_read:
            self._settings, self._is_read = None, True
            for row in (self._signed, self._budgets):
                if row is not None:
                    self._settings = apply_settings_row(self._settings, row, content(row.seq))
        return self._config, self._settings
