"""The inbox of a client's session: pauses, cancellations, messages and notifications."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.features.handoffs.rows import split_handoff
from watchroom.features.sessions.messages import Handover
from watchroom.features.sessions.rows import has_prompt
from watchroom.kernel.zones import DELIVERED
from watchroom.model import Row
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

_MAX_NOTIFICATIONS: Final = 10
_MAX_MESSAGE_CHARACTERS: Final = 500
_STEPS: Final = 50
"""Number of steps that are read together."""


class Controls(NamedTuple):
    """The controls of a session.

    - ``paused_by``: the actor who paused it, empty if it is not paused
    - ``cancelled``: the row that cancelled it, None if it was not cancelled or a prompt came later
    """

    paused_by: str = ""
    cancelled: Row | None = None


class SessionInbox:
    """The inbox of the sessions of ``agent`` in ``workspace``. Methods may be called from any thread."""

    def __init__(self, workspace: Workspace, agent: str) -> None:
        self._workspace = workspace
        self._agent = agent
        self.prompted: dict[str, int] = {}
        """The row of the newest prompt that this process has seen, by session path."""
        self._searched: dict[str, tuple[int, int]] = {}
        """By session path: the cancellation after which a prompt was searched, and the last version read."""

    def controls(self, main: str) -> Controls:
        """Return the controls of the session at ``main``, which are also those of its subagents. Raise
        `JournalError`."""
        said = self._workspace.session_zone.find_steering(main)
        cancelled = said.cancelled
        begun = self._workspace.journal.version("session", main, 1)
        if cancelled is not None and not self._is_cancelled(cancelled, main, begun):
            cancelled = None
        return Controls(said.pause.actor if said.pause is not None else "", cancelled)

    def forget(self, main: str) -> None:
        """Remove the session at the path ``main`` from the cache."""
        self.prompted.pop(main, None)
        self._searched.pop(main, None)

    def _is_cancelled(self, cancelled: Row, main: str, begun: Row | None) -> bool:
        """Return whether the cancellation is still in effect. It ends with the next prompt."""
        if begun is not None and cancelled.seq < begun.seq:
            return False
        if self.prompted.get(main, 0) < cancelled.seq and (found := self._find_prompt(main, cancelled.seq)):
            # Another process has seen it.
            self.prompted[main] = found
        return self.prompted.get(main, 0) < cancelled.seq

    def _find_prompt(self, main: str, after: int) -> int:
        """Return the first step with a prompt of the session at ``main`` after row ``after``, 0 if there is
        none. Each step is read once."""
        journal = self._workspace.journal
        searched, version = self._searched.get(main, (0, 0))
        if searched != after:
            head = next(
                (row for row in journal.heads("session", main, as_of=after) if row.path == main), None
            )
            version = (head.version or 0) if head is not None else 0
        while steps := journal.history("session", main, after_version=version, limit=_STEPS):
            for step in steps:
                if has_prompt(self._workspace.session_zone.record(step).text):
                    return step.seq
            version += len(steps)
        self._searched[main] = (after, version)
        return 0

    def take_news(self, main: str, handover: Handover) -> str:
        """Return a text with everything that has arrived for the agent, empty if there is nothing. Raise
        `JournalError`.

        It has the handoffs and settled conflicts since the last call, which then count as delivered. It also
        has the messages that ``handover`` takes for the session at the path ``main``.
        """
        language = self._workspace.config.language
        texts = catalogue(language)
        # Only messages begin at the start of a line. Their other lines are indented.
        messages = [
            texts("hook.message", sender=each.row.actor, text="\n  ".join(each.text.splitlines()))
            for each in handover.take(main)
        ]
        # Last, because these count as delivered even if an error follows.
        news = _fetch_notifications(self._workspace, self._agent, language)
        return "\n".join(each for each in (news, *messages) if each)


def _fetch_notifications(workspace: Workspace, agent: str, language: Language) -> str:
    """Return the handoffs and settled conflicts for ``agent`` since the last call as a text in ``language``,
    empty without news. They then count as delivered."""
    rows = workspace.notifications.fetch(agent)
    texts = catalogue(language)
    lines = [_describe(row, language) for row in rows[-_MAX_NOTIFICATIONS:]]
    if len(rows) > _MAX_NOTIFICATIONS:
        lines.insert(0, texts("hook.more", count=len(rows) - _MAX_NOTIFICATIONS))
    return "\n".join([texts("hook.news"), *lines]) if lines else ""


def _describe(row: Row, language: Language) -> str:
    texts = catalogue(language)
    # Only notifications begin at the start of a line. Text by others is indented.
    message = "\n  ".join(row.message[:_MAX_MESSAGE_CHARACTERS].splitlines())
    if row.zone in DELIVERED:
        sender, _, filename = split_handoff(row.path)
        return texts("hook.handed", sender=sender, filename=filename, message=message)
    kind = "resolved" if row.version else "dismissed"
    suffix = texts("conflict.saying", message=message) if message else ""
    version = row.version or row.base
    return "- " + texts(f"conflict.{kind}", who=row.actor, path=row.path, version=version, message=suffix)
