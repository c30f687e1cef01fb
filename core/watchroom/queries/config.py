"""The configuration as it stood: who was registered, and how."""

from __future__ import annotations

from watchroom.checkout.layout import CONFIG_PATH
from watchroom.errors import ConfigInvalid
from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.rules.config import Config, parse_config


def read_config(journal: Journal, *, as_of: int) -> Config:
    """The configuration that held at row ``as_of`` of ``journal``: one that was broken by hand did not count.
    Raises `JournalError`."""
    version = journal.head("config", CONFIG_PATH, as_of=as_of)
    while version is not None:
        try:
            return parse_config(journal.content(version.seq) or "")
        except ConfigInvalid:
            version = journal.version("config", CONFIG_PATH, (version.version or 0) - 1)
    return Config()


def read_registration(journal: Journal, *, as_of: int) -> Row | None:
    """The version of the configuration that is current at row ``as_of`` of ``journal``, None before the
    first. Raises `JournalError`."""
    return journal.head("config", CONFIG_PATH, as_of=as_of)
