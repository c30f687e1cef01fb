"""Post JSON to an address, with a timeout. The response body is not read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from watchroom.errors import DeliveryUnusable
from watchroom.model import Json
from watchroom.texts import Catalogue

TIMEOUT_SECONDS: Final = 10.0
"""Timeout of a request, from the name lookup to the status."""
_RETRIED_STATUSES: Final = (408, 425, 429)
"""Statuses after which a retry may succeed."""


class DeliveryFailed(Exception):
    """A message was not delivered. The text gives the reason, without an address.

    - ``is_final``: a retry cannot succeed.
    - ``retry_after``: the response's ``Retry-After`` header.
    """

    def __init__(self, reason: str, *, is_final: bool = False, retry_after: str = "") -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.retry_after = retry_after


def resolve_variable(entry: str, value: str, environ: Mapping[str, str], texts: Catalogue) -> str:
    """Return ``value``, or the environment variable that it names (``$NAME``).

    - ``entry``: the name of the value in the settings.
    - ``environ``: the environment.

    Raise `DeliveryUnusable` if the variable is missing or empty.
    """
    if not value.startswith("$"):
        return value
    found = environ.get(value[1:], "").strip()
    if not found:
        raise DeliveryUnusable(problem=texts("alert.no_variable", entry=entry, name=value))
    return found


def post_json(
    url: str, payload: Mapping[str, Json], texts: Catalogue, *, key: str = "", token: str = ""
) -> None:
    """Post ``payload`` to ``url``.

    - ``key``: the idempotency key.
    - ``token``: the bearer token, default: none.

    Redirects are not followed, because nobody configured their target. Raise `DeliveryFailed`.
    """
    # Slow to load, so loaded only to send.
    import httpx

    headers = {"Idempotency-Key": key}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        status, retry_after = asyncio.run(_post(url, payload, headers))
    except TimeoutError as error:
        raise DeliveryFailed(texts("alert.no_answer", seconds=int(TIMEOUT_SECONDS))) from error
    except ImportError as error:
        raise DeliveryFailed(texts("alert.no_socks")) from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        # The error's text may contain the address.
        raise DeliveryFailed(texts("alert.no_connection")) from error
    if not 200 <= status < 300:
        is_final = status < 500 and status not in _RETRIED_STATUSES
        reason = texts("alert.status", status=status)
        raise DeliveryFailed(reason, is_final=is_final, retry_after=retry_after)


async def _post(url: str, payload: Mapping[str, Json], headers: Mapping[str, str]) -> tuple[int, str]:
    import httpx

    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        httpx.AsyncClient(follow_redirects=False, timeout=TIMEOUT_SECONDS) as client,
        client.stream("POST", url, json=payload, headers=headers) as response,
    ):
        return response.status_code, response.headers.get("Retry-After", "")
