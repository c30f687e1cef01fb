"""Open a journal for reading, and find the row for a time or number."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from watchroom.errors import WorkspaceNotFound
from watchroom.kernel.checkout.location import find_journal
from watchroom.kernel.journal import Journal, is_server_address, open_to_read
from watchroom.kernel.journal import open_journal as open_at
from watchroom.texts import Catalogue
from watchroom_tui.presentation.grant_end import parse_end
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

_AGO: Final = re.compile(r"(\d{1,6})([smhd])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
LAST_MOMENT: Final = 2**63 - 1
"""The latest time that a journal can record, in nanoseconds since the epoch: 64 bits, up to the year 2262."""


def open_journal(root: str) -> Journal:
    """Open the journal of a workspace for reading.

    ``root``: the workspace's folder, or its address (``postgresql://…``).

    Raise `WorkspaceNotFound`, `JournalError`.
    """
    address = root if is_server_address(root) else find_journal(root)
    if address is None:
        raise WorkspaceNotFound(root=root)
    return open_at(address) if is_server_address(address) else open_to_read(address)


def moment(journal: Journal, text: str | None, texts: Catalogue) -> int:
    """Return the number of the row that ``text`` names: a row number, an ISO 8601 time, or an age such as
    ``10m`` (units s, m, h, d). None means the newest row. Raise `WrongUsage`."""
    if text is None:
        return journal.last_seq()
    last = journal.last_seq()
    if ago := _AGO.fullmatch(text):
        return journal.seq_at(max(0, journal.now() - int(ago[1]) * _UNITS[ago[2]] * 10**9))
    if not text.isdecimal():
        return journal.seq_at(nanoseconds(text, texts))
    if int(text) > last:
        raise WrongUsage(texts("cli.moment.beyond", given=text, last=last))
    return int(text)


def nanoseconds(text: str, texts: Catalogue) -> int:
    """Return an ISO 8601 time as nanoseconds since the epoch, at least 0 and at most `LAST_MOMENT`. A time
    without a zone is local. Raise `WrongUsage`."""
    try:
        since = datetime.fromisoformat(text).astimezone(UTC) - _EPOCH
    except (ValueError, OverflowError) as error:
        raise WrongUsage(texts("cli.moment.wrong", given=sanitize(text))) from error
    return max(0, min(since // _MICROSECOND * 1000, LAST_MOMENT))


def moment_range(journal: Journal, since: str | None, until: str | None, texts: Catalogue) -> tuple[int, int]:
    """Return the row numbers of ``since`` (default: 0) and ``until`` (default: the newest row), in the
    notation of `moment`. Raise `WrongUsage` if they are in the wrong order."""
    after = 0 if since is None else moment(journal, since, texts)
    last = moment(journal, until, texts)
    if last < after:
        raise WrongUsage(texts("cli.moment.backwards", after=after, until=last))
    return after, last


def seconds_until(text: str, now: int, texts: Catalogue) -> int:
    """Return the seconds from ``now`` (nanoseconds since the epoch) until ``text``, at least 1.

    ``text``: a duration such as ``1h``, the next ``18:00``, or an ISO 8601 time. Raise `WrongUsage` for
    another text, and for a time that has passed.
    """
    try:
        seconds = parse_end(text, datetime.fromtimestamp(now / 1e9).astimezone())
    except ValueError:
        seconds = (nanoseconds(text, texts) - now) // 10**9
    if seconds is None or seconds <= 0:
        raise WrongUsage(texts("cli.moment.past", given=sanitize(text)))
    return seconds
