"""The card that tells a client how to connect over HTTP: what the specification requires, and no secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from jsonschema import Draft202012Validator
from mcp.types.version import SUPPORTED_PROTOCOL_VERSIONS
from serving.clients import over_http, serving
from watchroom import Workspace
from watchroom.serving.server_card import CARD_TYPE, CATALOGUE_PATH

URL_PATTERN = r"^https?://\S+$"
SCHEMA = {
    "required": ["$schema", "name", "version", "description", "remotes"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"},
        "name": {"type": "string", "minLength": 3, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "version": {"type": "string", "maxLength": 255},
        "title": {"type": "string", "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "remotes": {
            "items": {
                "required": ["type", "url"],
                "additionalProperties": False,
                "properties": {
                    "type": {"const": "streamable-http"},
                    "url": {"pattern": URL_PATTERN},
                    "headers": {"items": {"required": ["name"], "type": "object"}},
                    "supportedProtocolVersions": {"items": {"type": "string"}},
                },
            }
        },
    },
}
"""The rules of the server card's schema for the fields that Watchroom sends."""


@pytest.fixture
def url(workspace: Workspace) -> Iterator[str]:
    with serving(workspace) as found:
        yield found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_card_has_the_form_of_the_specification(workspace: Workspace, language: str) -> None:
    with serving(workspace, language=language) as url:
        answer = httpx.get(f"{url}/server-card")
        assert (answer.status_code, answer.headers["content-type"]) == (200, CARD_TYPE)
        Draft202012Validator(SCHEMA).validate(answer.json())
        (remote,) = answer.json()["remotes"]
        assert remote["url"] == url
        assert remote["supportedProtocolVersions"] == [*SUPPORTED_PROTOCOL_VERSIONS]


async def test_a_client_finds_the_server_by_the_catalogue(workspace: Workspace, url: str) -> None:
    async with httpx.AsyncClient() as web:
        catalogue = (await web.get(urljoin(url, CATALOGUE_PATH))).json()
        (entry,) = [each for each in catalogue["entries"] if each["type"] == CARD_TYPE]
        card = (await web.get(entry["url"], headers={"Accept": CARD_TYPE})).json()
    async with over_http(card["remotes"][0]["url"], workspace.access.create("human:dana", "alice")) as client:
        assert client.server_info is not None
        assert client.server_info.version == card["version"]


def test_nothing_of_the_workspace_is_in_it(workspace: Workspace, url: str) -> None:
    token = workspace.access.create("human:dana", "alice")
    for address in (f"{url}/server-card", urljoin(url, CATALOGUE_PATH)):
        text = httpx.get(address, headers={"Authorization": f"Bearer {token}"}).text
        for secret in (token, "alice", "bob", "dana", str(workspace.root)):
            assert secret not in json.dumps(text), secret
        (header,) = httpx.get(f"{url}/server-card").json()["remotes"][0]["headers"]
        assert (header["isSecret"], "value" in header, "default" in header) == (True, False, False)


def test_other_hosts_and_pages_of_other_sites_are_refused(url: str) -> None:
    port = urlsplit(url).port
    for address in (f"{url}/server-card", urljoin(url, CATALOGUE_PATH)):
        assert httpx.get(address, headers={"Host": f"evil.example.org:{port}"}).status_code == 421
        assert httpx.get(address, headers={"Origin": "https://evil.example.org"}).status_code == 403
        assert httpx.post(address).status_code == 405


def test_an_unchanged_card_is_not_sent_again(url: str) -> None:
    first = httpx.get(f"{url}/server-card")
    again = httpx.get(f"{url}/server-card", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
