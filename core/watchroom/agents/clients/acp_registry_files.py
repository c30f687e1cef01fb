"""The kept index of the ACP registry, and the commands that a person has allowed. Both belong to one machine.

The index is fetched only by `fetch_index`, which people ask for.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.agents.clients.acp_registry import INDEX_URL, MAX_INDEX_BYTES, AgentIndex, parse_index
from watchroom.history.seal.anchors import state_folder

if TYPE_CHECKING:
    import httpx

FETCH_SECONDS: Final = 20.0
"""Timeout of a fetch, from the name lookup to the last byte."""
_NAME: Final = "acp-registry.json"
_ALLOWED: Final = "allowed-clients.json"
_MAX_ALLOWED_BYTES: Final = 1_000_000


class IndexNotFetched(Exception):
    """The index was not fetched. The text gives the reason."""


class KeptIndex(NamedTuple):
    """The kept index (``content``). ``fetched``: when it was fetched."""

    content: AgentIndex
    fetched: datetime


def index_path() -> str:
    """Return the path of the kept index, in the user's cache folder."""
    from platformdirs import user_cache_path

    return str(user_cache_path("watchroom", appauthor=False) / _NAME)


def read_index() -> KeptIndex | None:
    """Return the kept index, None if it was never fetched or is not readable."""
    path = index_path()
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_INDEX_BYTES + 1)
            fetched = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
        return KeptIndex(parse_index(text), fetched)
    except (OSError, ValueError):
        return None


def fetch_index(transport: httpx.AsyncBaseTransport | None = None) -> KeptIndex:
    """Fetch the index and keep it. ``transport``: how requests are sent, by default over the network.

    Redirects are not followed, because they lead elsewhere. Raise `IndexNotFetched`. Raise OSError if the
    index cannot be kept.
    """
    # Slow to load, so loaded only to fetch.
    import httpx

    try:
        text = asyncio.run(_fetch(transport))
        parse_index(text)
    except TimeoutError as error:
        raise IndexNotFetched(f"no answer within {FETCH_SECONDS:.0f} s") from error
    except httpx.HTTPError as error:
        raise IndexNotFetched(str(error) or type(error).__name__) from error
    except (ImportError, ValueError) as error:
        # Without an extra, httpx cannot use a SOCKS proxy.
        raise IndexNotFetched(str(error)) from error
    _write(index_path(), text)
    kept = read_index()
    if kept is None:
        raise IndexNotFetched(index_path())
    return kept


async def _fetch(transport: httpx.AsyncBaseTransport | None) -> bytes:
    import httpx

    found = bytearray()
    async with (
        asyncio.timeout(FETCH_SECONDS),
        httpx.AsyncClient(transport=transport, follow_redirects=False, timeout=FETCH_SECONDS) as client,
        client.stream("GET", INDEX_URL) as response,
    ):
        if response.status_code != httpx.codes.OK:
            raise ValueError(f"HTTP {response.status_code}")
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > MAX_INDEX_BYTES:
                raise ValueError(f"more than {MAX_INDEX_BYTES:,} bytes")
    return bytes(found)


def is_allowed(name: str, command: Sequence[str]) -> bool:
    """Return whether a person has allowed exactly this ``command`` for the agent ``name`` on this machine."""
    return _read_allowed().get(name) == [*command]


def allow(name: str, command: Sequence[str]) -> None:
    """Record that a person allows ``command`` for the agent ``name``, instead of an earlier one. Raise
    OSError."""
    allowed = {**_read_allowed(), name: [*command]}
    _write(_allowed_path(), json.dumps(allowed, indent=1, sort_keys=True).encode())


def _allowed_path() -> str:
    return os.path.join(state_folder(), _ALLOWED)


def _read_allowed() -> dict[str, object]:
    try:
        with open(_allowed_path(), "rb") as file:
            found = json.loads(file.read(_MAX_ALLOWED_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: str, text: bytes) -> None:
    """Write ``text`` to ``path``, readable by this user only."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    new = f"{path}.{os.getpid()}"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text)
    os.replace(new, path)
