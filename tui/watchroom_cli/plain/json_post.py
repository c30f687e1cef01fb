"""Posts JSON to an address: one request of a bounded time, whose answer is not read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

SECONDS: Final = 10.0
"""So long a request may take, from the question for the address to the status."""
_PASSING: Final = (408, 425, 429)
"""These statuses say that another try may do."""


class DeliveryFailed(Exception):
    """A message did not arrive; the text says why, and names no address. ``is_final``: it never will."""

    def __init__(self, reason: str, *, is_final: bool = False, retry_after: str = "") -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.retry_after = retry_after


def resolve_variable(entry: str, value: str, environ: Mapping[str, str], texts: Catalogue) -> str:
    """``value``, or what the variable of ``environ`` holds that it names (``$NAME``); ``entry`` is what the
    settings call it. Raises `WrongUsage` where there is no such variable."""
    if not value.startswith("$"):
        return value
    found = environ.get(value[1:], "").strip()
    if not found:
        raise WrongUsage(texts("watch.alert.no_variable", entry=entry, name=value))
    return found


def post_json(
    url: str, payload: Mapping[str, Json], texts: Catalogue, *, key: str = "", token: str = ""
) -> None:
    """Post ``payload`` to ``url``, with ``key`` as what tells a repetition, and ``token`` as a bearer's.
    Redirects are not followed: what they lead to nobody configured. Raises `DeliveryFailed`."""
    # The library is slow to load: whoever sends nothing does not wait for it.
    import httpx

    headers = {"Idempotency-Key": key}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        status, retry_after = asyncio.run(_post(url, payload, headers))
    except TimeoutError as error:
        raise DeliveryFailed(texts("watch.alert.no_answer", seconds=int(SECONDS))) from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        # What the error says may name the address.
        raise DeliveryFailed(texts("watch.alert.no_connection")) from error
    if not 200 <= status < 300:
        is_final = status < 500 and status not in _PASSING
        reason = texts("watch.alert.status", status=status)
        raise DeliveryFailed(reason, is_final=is_final, retry_after=retry_after)


async def _post(url: str, payload: Mapping[str, Json], headers: Mapping[str, str]) -> tuple[int, str]:
    import httpx

    async with (
        asyncio.timeout(SECONDS),
        httpx.AsyncClient(follow_redirects=False, timeout=SECONDS) as client,
        client.stream("POST", url, json=payload, headers=headers) as response,
    ):
        return response.status_code, response.headers.get("Retry-After", "")
