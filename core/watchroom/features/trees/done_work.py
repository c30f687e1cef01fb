"""Work that is done in git before its row is committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from watchroom.errors import JournalError, WorkUnrecorded
from watchroom.validation import escape_unstorable

_MAX_TEXT = 500


@contextmanager
def reported_as_done(work: str) -> Iterator[None]:
    """Raise `WorkUnrecorded` if the row, which the context commits, is refused.

    The caller's error would say that nothing was changed. ``work``: what was done, for the error.
    """
    try:
        yield
    except JournalError as error:
        raise WorkUnrecorded(work=escape_unstorable(work, _MAX_TEXT), reason=error.message()) from error
