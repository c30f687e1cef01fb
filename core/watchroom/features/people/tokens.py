"""Tokens with which agents and people connect over the network.

A token is ``wr1.AGENT.ID.SECRET``; a person's token has ``human%3ANAME`` in place of the agent. The secret
has 256 random bits. The row (path ``AGENT/ID``) keeps only the checksum of the secret and the expiry. Version
2 revokes the token.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from watchroom import validation
from watchroom.errors import InvalidName, NotFound
from watchroom.features.config.store import Store
from watchroom.features.people.rules import MAKE_TOKEN, REVOKE_TOKEN
from watchroom.features.people.service import PeopleRegistry
from watchroom.model import HUMAN_PREFIX, Row, Write

ZONE: Final = "token"
_PREFIX: Final = "wr1"
_NOBODY: Final = validation.sha256(b"nobody")


class TokenInfo(NamedTuple):
    """A token.

    - ``agent``: its agent, or ``human:NAME``.
    - ``id``: its id, which is also a part of the token.
    - ``row``: the row that created it.
    - ``expires``: nanoseconds since the epoch, None for never.
    - ``revoked``: whether it was revoked.
    """

    agent: str
    id: str
    row: Row
    expires: int | None
    revoked: bool


class Tokens:
    """The tokens of the workspace of ``store``. Thread-safe. ``people``: decides who had permission to create
    a token."""

    def __init__(self, store: Store, people: PeopleRegistry) -> None:
        self._store = store
        self._people = people

    def create(self, actor: str, agent: str, *, seconds: float | None = None) -> str:
        """Create a token, and return it. It cannot be read later, because the journal keeps only a checksum.

        - ``actor``: the person who creates it.
        - ``agent``: the agent who connects with it, or ``human:NAME``, who can only read.
        - ``seconds``: its lifetime, default unlimited.

        Raise `UnknownAgent`, `InvalidAgentId`.
        """
        if agent.startswith(HUMAN_PREFIX):
            validation.check_human_name(agent.removeprefix(HUMAN_PREFIX))
        else:
            agent = self._store.registry.agent(agent).id
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        expires = None if seconds is None else self._store.journal.now() + int(seconds * 1e9)
        content = json.dumps({"sha256": validation.sha256(secret.encode()), "expires": expires})
        self._store.write(Write(actor, MAKE_TOKEN, ZONE, f"{agent}/{token_id}", content, expected=0))
        return ".".join((_PREFIX, quote(agent, safe=""), token_id, secret))

    def authenticate(self, token: str) -> str | None:
        """Return the agent or person of ``token``. None if it is malformed, revoked, expired, or was issued
        by someone without permission. A wrong secret takes the same time to refuse as a wrong id."""
        prefix, _, rest = token.partition(".")
        rest, _, secret = rest.rpartition(".")
        agent, _, token_id = rest.rpartition(".")
        agent = unquote(agent)
        kept, expires = _NOBODY, None
        made = self._find_made(agent, token_id) if prefix == _PREFIX else None
        if made is not None:
            kept, expires = _parse_token(self._store.content(made))
        given = validation.sha256(secret.encode("utf-8", "surrogatepass"))
        if not hmac.compare_digest(given, kept) or made is None or self._people.find_flaw(made):
            return None
        if expires is not None and self._store.journal.now() >= expires:
            return None
        return agent if self._is_known(agent) else None

    def _is_known(self, agent: str) -> bool:
        if not agent.startswith(HUMAN_PREFIX):
            return agent in self._store.registry.current().agents
        people = self._people.current()
        return not people.is_closed or people.find(agent) is not None

    def list(self, agent: str = "") -> list[TokenInfo]:
        """Return all tokens, or the tokens of ``agent``, sorted by agent and id."""
        found = []
        for head in self._store.journal.heads(ZONE, f"{agent}/" if agent else ""):
            made = self._store.journal.version(ZONE, head.path, 1)
            if made is not None:
                owner, _, token_id = head.path.partition("/")
                _, expires = _parse_token(self._store.content(made))
                is_revoked = self._find_made(owner, token_id) is None
                found.append(TokenInfo(owner, token_id, made, expires, is_revoked))
        return found

    def revoke(self, actor: str, agent: str, token_id: str) -> Row:
        """Revoke the token ``token_id`` of ``agent`` as ``actor``. Return the row. Raise `NotFound` if there
        is no such token, or if it is already revoked."""
        head = self._head(agent, token_id)
        if head is None or self._find_made(agent, token_id) is None:
            raise NotFound(path=validation.escape_unstorable(f"{agent}/{token_id}", 100), zone=ZONE)
        return self._store.write(
            Write(actor, REVOKE_TOKEN, ZONE, head.path, None, expected=head.version or 0)
        ).row

    def _find_made(self, agent: str, token_id: str) -> Row | None:
        """Return the first version of a token; None if there is none or it was revoked.

        Only the first version counts, so that no later version can change the secret.
        """
        if self._head(agent, token_id) is None:
            return None
        first, *later = self._store.journal.history(ZONE, f"{agent}/{token_id}")
        return None if any(each.deleted for each in later) else first

    def _head(self, agent: str, token_id: str) -> Row | None:
        try:
            if agent.startswith(HUMAN_PREFIX):
                validation.check_human_name(agent.removeprefix(HUMAN_PREFIX))
            else:
                validation.check_agent_id(agent)
        except InvalidName:
            return None
        return self._store.journal.head(ZONE, f"{agent}/{token_id}") if token_id.isalnum() else None


def _parse_token(text: str) -> tuple[str, int | None]:
    """Return the checksum and the expiry in a token's content. The expiry is in nanoseconds since the epoch,
    None for never.

    For damaged content, return a checksum that no secret has.
    """
    try:
        content = json.loads(text)
        kept, expires = content["sha256"], content["expires"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return _NOBODY, 0
    is_valid = isinstance(kept, str) and kept.isascii() and (expires is None or type(expires) is int)
    return (kept, expires) if is_valid else (_NOBODY, 0)
