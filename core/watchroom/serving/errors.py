"""What a client's calls can be refused for, beside what tools refuse."""

from __future__ import annotations

from watchroom.errors import DeniedError


class CallRejected(DeniedError):
    """A person did not approve of the call. Values: reason."""

    code = "call_rejected"


class CallUnanswered(DeniedError):
    """No person answered whether the call may be made."""

    code = "call_unanswered"
