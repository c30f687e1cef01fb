"""The keys by which agents and people come in over the network: each for one, kept as a checksum only.

A token is ``wr1.AGENT.ID.SECRET``, a person's has ``human%3ANAME`` in place of the agent. Its row
(``AGENT/ID``) has the checksum of the secret, which is 256 bits of chance, and when it expires; version 2
revokes it.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from watchroom import validation
from watchroom.errors import InvalidName, NotFound
from watchroom.model import HUMAN_PREFIX, Row, Write
from watchroom.rules.effects import MAKE_TOKEN, REVOKE_TOKEN
from watchroom.zones.people import PeopleZone
from watchroom.zones.store import Store

ZONE: Final = "token"
_PREFIX: Final = "wr1"
_NOBODY: Final = validation.sha256(b"nobody")


class TokenInfo(NamedTuple):
    """A token that was made for ``agent``, which is ``human:NAME`` where it is a person's. ``expires`` is
    nanoseconds since the epoch, None for never."""

    agent: str
    id: str
    row: Row
    expires: int | None
    revoked: bool


class Tokens:
    """The tokens of agents, in ``store``; ``people`` says which of them somebody made who may. May be used
    from any thread."""

    def __init__(self, store: Store, people: PeopleZone) -> None:
        self._store = store
        self._people = people

    def create(self, actor: str, agent: str, *, seconds: float | None = None) -> str:
        """Make a token of ``agent`` (or of a person, ``human:NAME``, who only looks by it) for ``actor``, for
        so many ``seconds`` (default: for ever). Returns it; it is shown this once. Raises `UnknownAgent`,
        `InvalidAgentId`."""
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
        """Return the agent or person whose ``token`` it is. None if it is malformed, revoked, expired, or was
        issued by someone without permission. A wrong secret takes the same time to refuse as a wrong id."""
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
        """All tokens, or those of ``agent``, by agent and id."""
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
        """End the token ``token_id`` of ``agent``, for ``actor``. Returns the row. Raises `NotFound`, also if
        it was revoked before."""
        head = self._head(agent, token_id)
        if head is None or self._find_made(agent, token_id) is None:
            raise NotFound(path=validation.escape_unstorable(f"{agent}/{token_id}", 100), zone=ZONE)
        return self._store.write(
            Write(actor, REVOKE_TOKEN, ZONE, head.path, None, expected=head.version or 0)
        ).row

    def _find_made(self, agent: str, token_id: str) -> Row | None:
        """Return the first version of a token that was not revoked, None where there is none: no later
        version may change its secret."""
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
    """Return the checksum and the expiry (nanoseconds since the epoch, None: never) in a token's content. A
    damaged content has nobody's checksum."""
    try:
        content = json.loads(text)
        kept, expires = content["sha256"], content["expires"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return _NOBODY, 0
    is_valid = isinstance(kept, str) and kept.isascii() and (expires is None or type(expires) is int)
    return (kept, expires) if is_valid else (_NOBODY, 0)
