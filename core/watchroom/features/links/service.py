"""`Links`: issues links, and finds them by their tokens.

The row of an answer uses its link up: the call of the row is the path of the link. So a link whose answer was
refused stays valid.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.features.config.store import Store
from watchroom.features.links.rows import (
    ISSUE,
    PREFIX,
    REFUSE,
    Link,
    LinkAction,
    dump_link,
    link_path,
    parse_link,
)
from watchroom.features.links.rules import (
    MAX_LINK_SECONDS,
    TOKEN,
    LinkRefusal,
    WebSettings,
    find_refusal,
)
from watchroom.features.people.rows import ZONE as PERSON_ZONE
from watchroom.model import ANSWER, HUMAN_PREFIX, SYSTEM, Json, Note, Row, Write, Zone

ZONE: Final[Zone] = "workspace"
_TOKEN_BYTES: Final = 32
_MAX_TEXT: Final = 500
"""Maximum characters of the sentence in a link's row."""


class LinkedNeed(NamedTuple):
    """A need that gets a link.

    - ``kind``, ``row``: the kind of the need, and the row that opened it.
    - ``text``: the sentence about it.
    - ``deadline``: in nanoseconds since the epoch, None for none.
    """

    kind: str
    row: int
    text: str
    deadline: int | None = None


class FoundLink(NamedTuple):
    """The link of a token.

    - ``link``: None if no link has the token.
    - ``refusal``: the reason to refuse it, None if it is valid.
    - ``used``: the row that used it, None for none.
    - ``path``: its path.
    """

    link: Link | None
    refusal: LinkRefusal | None
    used: Row | None = None
    path: str = ""


class Links:
    """The links of the workspace of ``store``. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def settings(self) -> WebSettings:
        """The config table ``[web]``."""
        return self._store.registry.current().web

    def issue(self, needs: Sequence[tuple[LinkedNeed, LinkAction]]) -> list[str]:
        """Issue a link for each of ``needs``, in one commit. Return their tokens.

        The tokens cannot be read later, because the journal keeps only their checksums. Raise
        `JournalError`.
        """
        settings, now = self.settings, self._store.journal.now()
        enrolment = self._enrolment(settings.person)
        latest = now + MAX_LINK_SECONDS * 1_000_000_000
        tokens, drafts = [], []
        for need, action in needs:
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            expires = latest if need.deadline is None else min(latest, need.deadline)
            person, text = settings.person, need.text[:_MAX_TEXT]
            link = Link(need.kind, need.row, person, enrolment, expires, action, text)
            detail: dict[str, Json] = {"row": need.row, "person": person, "expires": expires}
            path = link_path(token)
            drafts.append(Write(SYSTEM, ISSUE, ZONE, path, dump_link(link), expected=0, detail=detail))
            tokens.append(token)
        self._store.write_all(drafts)
        return tokens

    def find(self, token: str) -> FoundLink:
        """Return the link of ``token``, and whether it is valid now. Raise `JournalError`."""
        if not TOKEN.fullmatch(token):
            return FoundLink(None, "link_unknown")
        journal, path = self._store.journal, link_path(token)
        link = self._read(journal.version(ZONE, path, 1))
        enrolment = self._enrolment(link.person) if link is not None else 0
        used = None if link is None else self._find_use(link, path)
        refusal = find_refusal(link, self.settings, enrolment, journal.now(), is_used=used is not None)
        return FoundLink(link, refusal, used, path)

    def record_refusal(self, reason: LinkRefusal, link: Link | None, uncounted: int) -> Row:
        """Record that a link was refused. Return the row. Raise `JournalError`.

        - ``link``: None if it is unknown.
        - ``uncounted``: the number of earlier refusals without a row.
        """
        detail: dict[str, Json] = {}
        if link is not None:
            detail = {"row": link.row, "person": link.person}
        if uncounted:
            detail["uncounted"] = uncounted
        note = Note(SYSTEM, REFUSE, ZONE, PREFIX.rstrip("/"), "failed", reason, detail=detail)
        return self._store.commits.commit(note).row

    def _find_use(self, link: Link, path: str) -> Row | None:
        """Return the row that used up ``link``, which is at ``path``: the answer whose call is the link. None
        if it was not used."""
        answers = self._store.journal.rows_of_call(HUMAN_PREFIX + link.person, path)
        used = next((row for row in answers if row.tool == ANSWER and row.outcome == "ok"), None)
        # Earlier versions wrote a second version of the link before the answer.
        return used or self._store.journal.version(ZONE, path, 2)

    def _read(self, issued: Row | None) -> Link | None:
        if issued is None or (issued.actor, issued.tool) != (SYSTEM, ISSUE):
            return None
        try:
            return parse_link(self._store.content(issued))
        except JournalDamaged:
            # A damaged link is valid for nothing.
            return None

    def _enrolment(self, person: str) -> int:
        head = self._store.journal.head(PERSON_ZONE, person)
        return head.seq if head else 0
