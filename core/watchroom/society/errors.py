"""The errors of going on with a session that another process ran."""

from __future__ import annotations

from watchroom.errors import WatchroomError


class SessionInUse(WatchroomError):
    """The process that runs a session is seen alive. Values: session, machine, process."""

    code = "session_in_use"


class SessionHasEnded(WatchroomError):
    """A session has ended: nobody can go on with it. Values: session, status."""

    code = "session_has_ended"


class SessionOfClient(WatchroomError):
    """A session is that of a client that a person started: nothing else can go on with it. Values: session,
    client."""

    code = "session_of_client"
