"""The configuration as it stood: who was registered, how, and which settings held."""

from __future__ import annotations

from contextlib import suppress

from watchroom.checkout.layout import CONFIG_PATH
from watchroom.errors import ConfigInvalid, JournalDamaged
from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.rules.config import Config, parse_recorded_config
from watchroom.rules.settings import PATH, ZONE, apply_settings_row, with_settings


def read_config(journal: Journal, *, as_of: int) -> Config:
    """The configuration that held at row ``as_of`` of ``journal``: one that was broken by hand did not count,
    nor did settings that nobody signed who may. Raises `JournalError`."""
    return with_settings(_read_written(journal, as_of), _read_settings(journal, as_of))


def _read_written(journal: Journal, as_of: int) -> Config:
    for version in reversed(journal.history("config", CONFIG_PATH)):
        if version.seq <= as_of:
            with suppress(ConfigInvalid, JournalDamaged):
                return parse_recorded_config(version, journal.content(version.seq))
    return Config()


def _read_settings(journal: Journal, as_of: int) -> Config | None:
    if journal.head(ZONE, PATH, as_of=as_of) is None:
        return None
    # The zones are slow to load, and the first paint of the dashboard does without them.
    from watchroom.zones.people import PeopleReader

    people, settings = PeopleReader(journal), None
    for row in journal.history(ZONE, PATH):
        if row.seq <= as_of and not people.find_flaw(row):
            # A damaged version does not count either.
            with suppress(ConfigInvalid, JournalDamaged):
                settings = apply_settings_row(settings, row, journal.content(row.seq))
    return settings


def read_registration(journal: Journal, *, as_of: int) -> Row | None:
    """The version of the configuration that is current at row ``as_of`` of ``journal``, None before the
    first. Raises `JournalError`."""
    return journal.head("config", CONFIG_PATH, as_of=as_of)
