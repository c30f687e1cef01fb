"""Structured debug records by category. Each category is a logger, which is off by default."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

CATEGORIES: Final = ("TextEdit.MatchTrace", "TextEdit.Schema", "Sync.Persistence", "Sync.External")
"""The categories: the text that an edit matched; answers that do not match the schema; writes to the sources
of buffers; external changes of these sources."""
_ROOT: Final = "watchroom"
_OF_EVERY_RECORD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def category_logger(category: str) -> logging.Logger:
    """Return the logger ``watchroom.CATEGORY`` of ``category``. Its records have their fields as
    ``extra``."""
    return logging.getLogger(f"{_ROOT}.{category}")


@contextmanager
def debug_records(wanted: str, stream: TextIO) -> Iterator[None]:
    """Write debug records to ``stream`` within the context, one JSON object per line, in ASCII.

    ``wanted``: categories, groups (``TextEdit``, ``Sync``) or ``all``, separated by commas. Raise ValueError
    with an unknown name.
    """
    loggers = [category_logger(each) for each in _named(wanted)]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines())
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate


def _named(wanted: str) -> list[str]:
    found: dict[str, None] = {}
    for name in filter(None, (each.strip() for each in wanted.split(","))):
        named = [each for each in CATEGORIES if name in ("all", each, each.partition(".")[0])]
        if not named:
            raise ValueError(name)
        found.update(dict.fromkeys(named))
    return list(found)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
        category = record.name.removeprefix(f"{_ROOT}.")
        return json.dumps(
            {"time": round(record.created, 6), "category": category, "event": record.getMessage(), **fields},
            default=str,
        )
