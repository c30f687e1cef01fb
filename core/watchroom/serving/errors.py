"""What a client's calls can be refused for, beside what tools refuse."""

from __future__ import annotations

from typing import ClassVar

from watchroom.errors import WatchroomError
from watchroom.model import Outcome


class CallRejected(WatchroomError):
    """A person did not approve of the call. Values: reason."""

    code = "call_rejected"
    outcome: ClassVar[Outcome] = "denied"


class CallUnanswered(WatchroomError):
    """No person answered whether the call may be made."""

    code = "call_unanswered"
    outcome: ClassVar[Outcome] = "denied"
