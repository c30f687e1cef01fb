"""Messages to an agent that has no session: they come with the results of its calls."""

from __future__ import annotations

from watchroom.model import HUMAN_PREFIX
from watchroom.rules.presence import is_unfinished
from watchroom.texts import catalogue
from watchroom.workspace import Workspace


class CallMessages:
    """The messages that wait for agents of ``workspace``. May be used from any thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def take(self, actor: str) -> str:
        """Return the messages that wait for the agent ``actor``, a line for each; empty if there are none, or
        a session of the agent goes on, which gets them. They count as handed over: when the result is sent
        nobody can see here. Raises `JournalError`."""
        if actor.startswith(HUMAN_PREFIX):
            return ""
        step = self._workspace.session_zone.newest_step(actor)
        if step is not None and is_unfinished(step):
            return ""
        with self._workspace.messages.hand_over() as handover:
            messages = handover.take(actor)
            handover.record()
        texts = catalogue(self._workspace.config.language)
        return "\n".join(
            texts("hook.message", sender=each.row.actor, text="\n  ".join(each.text.splitlines()))
            for each in messages
        )
