"""The server card of MCP: what a client needs to connect to a server over HTTP. It contains no secrets.

The card is at ``ADDRESS/server-card``. A catalogue that names it is at ``/.well-known/ai-catalog.json``. Both
need no token. They do not list tools or agents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Final

from mcp.types.version import KNOWN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.validation import sha256

CATALOGUE_PATH: Final = "/.well-known/ai-catalog.json"
CARD_TYPE: Final = "application/mcp-server-card+json"
_CATALOGUE_TYPE: Final = "application/ai-catalog+json"
_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_NAME: Final = "localhost/watchroom"
_ID: Final = "urn:air:localhost:mcp:watchroom"
_CACHE: Final = "public, max-age=3600"


def card_routes(mcp_path: str, texts: Catalogue) -> list[Route]:
    """Return the routes of the card and the catalogue for a server at ``mcp_path``, with descriptions from
    ``texts``."""
    card_path = f"{mcp_path}/server-card"

    async def send_card(request: Request) -> Response:
        return _respond(request, build_card(_address(request, mcp_path), texts), CARD_TYPE)

    async def send_catalogue(request: Request) -> Response:
        entry: Json = {"identifier": _ID, "type": CARD_TYPE, "url": _address(request, card_path)}
        return _respond(request, {"specVersion": "1.0", "entries": [entry]}, _CATALOGUE_TYPE)

    route = partial(Route, methods=["GET"])
    return [route(card_path, send_card), route(CATALOGUE_PATH, send_catalogue)]


def build_card(address: str, texts: Catalogue) -> Mapping[str, Json]:
    """Return the card of the server at ``address``."""
    header: Json = {
        "name": "Authorization",
        "description": texts("server_card.token"),
        "isRequired": True,
        "isSecret": True,
    }
    return {
        "$schema": _SCHEMA,
        "name": _NAME,
        "version": version("watchroom"),
        "title": "Watchroom",
        "description": texts("server_card.description"),
        "remotes": [
            {
                "type": "streamable-http",
                "url": address,
                "headers": [header],
                "supportedProtocolVersions": [*KNOWN_PROTOCOL_VERSIONS],
            }
        ],
    }


def _address(request: Request, path: str) -> str:
    # The header was compared with the names of this machine before.
    return f"http://{request.headers['host']}{path}"


def _respond(request: Request, document: Mapping[str, Json], media_type: str) -> Response:
    body = json.dumps(document, ensure_ascii=False).encode()
    headers = {"Cache-Control": _CACHE, "ETag": f'"{sha256(body)}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)
