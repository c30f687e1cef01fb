"""What can go wrong with a journal that several machines share, or that is moved."""

from __future__ import annotations

from watchroom.errors import JournalBusy, JournalError


class JournalUnreachable(JournalError):
    """The server of the journal does not answer: nothing was changed. Values: reason."""

    code = "journal_unreachable"


class OutcomeUnknown(JournalError):
    """The server went away, or the disk failed, before it was certain what became of an append: it is a row
    or not. Values: reason."""

    code = "outcome_unknown"


class JournalReplaced(JournalError):
    """The journal's files were removed or replaced while they were open, and cannot be put back: nothing was
    changed. Values: file (the names of these files), kept (the copy that has all rows of this process)."""

    code = "journal_replaced"


class JournalDenied(JournalError):
    """The server refuses who asks: the login is no member, may only look, or wrote in another's name. Values:
    reason."""

    code = "journal_denied"


class JournalHeld(JournalBusy):
    """Another session on the journal's server holds a lock, mostly that of the newest row. Values: seconds,
    holder."""

    texts = "journal_held"


class EncodingUnsupported(JournalError):
    """The journal's database is not encoded in UTF-8. Values: encoding, as PostgreSQL names it."""

    code = "encoding_unsupported"


class DraftRefused(JournalError):
    """The journal's server refuses a row that breaks its rules. Values: reason."""

    code = "draft_refused"


class JournalInUse(JournalError):
    """The journal cannot be moved while a process runs something on it. Values: process, machine."""

    code = "journal_in_use"


class MoveDiffers(JournalError):
    """The target of a move holds another row than its source. Values: seq."""

    code = "move_differs"
