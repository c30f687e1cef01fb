"""The server over HTTP: whose token comes in, acts; whoever has none, does not."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from serving.clients import called, over_http, serving
from watchroom import Workspace
from watchroom.serving.http import MAX_REQUEST_BYTES

ACCEPTS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def url(workspace: Workspace) -> Iterator[str]:
    with serving(workspace) as found:
        yield found


def status(url: str, **headers: str) -> int:
    return httpx.post(url, json=LIST, headers={**ACCEPTS, **headers}).status_code


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_each_token_is_one_agent(workspace: Workspace, url: str) -> None:
    tokens = {agent: workspace.access.create("human:dana", agent) for agent in ("alice", "bob")}
    for agent, token in tokens.items():
        async with over_http(url, token) as client:
            await called(client, "collab_write", filepath=f"{agent}.md", content="x", message="m")
            handed = {"to_agent": "charlie", "filename": "a.md", "content": agent, "message": "m"}
            await called(client, "handoff_file", **handed)
    for agent in tokens:
        head = workspace.journal.head("collab", f"{agent}.md")
        assert head is not None
        assert head.actor == agent
    assert workspace.verify() == []


def test_wrong_missing_and_revoked_tokens_are_refused(workspace: Workspace, url: str) -> None:
    token = workspace.access.create("human:dana", "alice")
    (made,) = workspace.access.list("alice")
    before = workspace.journal.last_seq()
    prefix, _, secret = token.rpartition(".")
    for wrong in (
        "nonsense",
        "wr1",
        "wr1...",
        f"{prefix}.",
        f"{prefix}.{secret[:-1]}",
        f"{prefix}.{secret}x",
        token.replace("alice", "bob"),
        token.replace("alice", "mallory"),
        token.replace("wr1", "wr2"),
        "é" * 20,
        "a" * 20_000,
    ):
        raw = {name.encode(): value.encode() for name, value in {**ACCEPTS, **bearing(wrong)}.items()}
        answer = httpx.post(url, json=LIST, headers=raw)
        assert answer.status_code in (400, 401), wrong
    assert status(url) == 401
    assert status(url, Authorization=f"Basic {token}") == 401
    assert workspace.journal.last_seq() == before
    workspace.access.revoke("human:dana", "alice", made.id)
    assert status(url, **bearing(token)) == 401


async def test_a_persons_token_only_looks(workspace: Workspace, url: str) -> None:
    workspace.tools("alice").dispatch_tool_call(
        "collab_write", {"filepath": "a.md", "content": "one", "message": "m"}
    )
    token = workspace.access.create("human:dana", "human:zoë k. wu")
    assert token.isascii()
    before = [row for row in workspace.journal.rows(0, limit=1000) if row.version is not None]
    async with over_http(url, token) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "collab_read" in names
        assert not names & {"collab_write", "answer_request", "write_file"}
        read = await called(client, "collab_read", filepath="a.md")
        assert read["content"] == "one"
        refused = await client.call_tool("collab_write", {"filepath": "a.md", "content": "x", "message": "m"})
        assert "a person's token is view-only" in str(refused)
    after = [row for row in workspace.journal.rows(0, limit=1000) if row.version is not None]
    assert after == before


def test_expired_tokens_are_refused(workspace: Workspace, url: str) -> None:
    expired = workspace.access.create("human:dana", "alice", seconds=-1)
    assert status(url, **bearing(expired)) == 401
    valid = workspace.access.create("human:dana", "alice", seconds=3600)
    assert status(url, **bearing(valid)) != 401


def test_only_a_checksum_is_kept(workspace: Workspace) -> None:
    token = workspace.access.create("human:dana", "alice")
    secret = token.rpartition(".")[2]
    for row in workspace.journal.rows(limit=10_000):
        kept = f"{row} {workspace.journal.content(row.seq)}"
        assert secret not in kept
    (made,) = workspace.access.list("alice")
    assert (made.agent, made.expires, made.revoked) == ("alice", None, False)
    assert made.row.actor == "human:dana"


def test_pages_of_other_sites_and_other_names_of_this_machine_are_refused(
    workspace: Workspace, url: str
) -> None:
    token = bearing(workspace.access.create("human:dana", "alice"))
    here = urlsplit(url).netloc
    port = urlsplit(url).port
    for host in (
        "evil.example.org",
        f"{here}.evil.example.org",
        f"{here}:evil.example.org",
        f"127.0.0.1:{port}0",
        "127.0.0.1",
        f"evil.example.org:{port}",
        "",
    ):
        assert status(url, **token, Host=host) == 421, host
        assert status(url, Host=host) == 421, host
    for origin in (
        "https://evil.example.org",
        f"http://{here}.evil.example.org",
        f"http://{here}:evil.example.org",
        f"https://{here}",
        "http://127.0.0.1",
        "null",
    ):
        assert status(url, **token, Origin=origin) == 403, origin
    for host in (here, f"localhost:{port}", f"LocalHost:{port}"):
        assert status(url, **token, Host=host, Origin=f"http://{host}") not in (403, 421), host


def test_bodies_that_are_too_large_are_refused(workspace: Workspace, url: str) -> None:
    token = bearing(workspace.access.create("human:dana", "alice"))
    body = b" " * (MAX_REQUEST_BYTES + 1)
    assert httpx.post(url, content=body, headers={**ACCEPTS, **token}).status_code == 413
    assert httpx.post(url, content=body, headers=ACCEPTS).status_code == 401


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"jsonrpc": "2.0"}', b"null" * 1000])
def test_bodies_that_make_no_sense_are_refused(workspace: Workspace, url: str, body: bytes) -> None:
    token = bearing(workspace.access.create("human:dana", "alice"))
    assert httpx.post(url, content=body, headers={**ACCEPTS, **token}).status_code == 400


async def test_the_longest_text_comes_through(workspace: Workspace, url: str) -> None:
    text = "é\n" * (3 * 1024 * 1024)
    async with over_http(url, workspace.access.create("human:dana", "alice")) as client:
        await called(client, "save_to_my_workspace", filename="long.md", content=text)
    head = workspace.journal.head("private", "alice/long.md")
    assert head is not None
    assert workspace.journal.content(head.seq) == text
