"""Who is let in to the dashboard in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cli.running import misuse, refusal
from watchroom import Workspace
from web.browsing import served


@pytest.fixture
def url(root: Path) -> Iterator[str]:
    Workspace.open(root, agents=["alice"]).close()
    with served(root) as found:
        yield found


def place(url: str, path: str = "/") -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{path}"


def cookie_of(url: str) -> str:
    return f"watchroom-{urlsplit(url).port}"


def test_two_dashboards_are_open_in_one_browser(url: str, tmp_path: Path) -> None:
    Workspace.open(tmp_path / "second", agents=["alice"]).close()
    with served(tmp_path / "second") as second, httpx.Client() as browser:
        for each in (url, second):
            browser.get(each)
        assert [browser.get(place(each)).status_code for each in (url, second)] == [200, 200]


def test_the_token_lets_in_and_is_not_kept_in_the_address(url: str) -> None:
    with httpx.Client() as browser:
        answer = browser.get(url)
        assert (answer.status_code, answer.headers["location"]) == (302, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        page = browser.get(place(url))
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert browser.get(place(url, "/static/js/textual.js")).status_code == 200


def test_without_it_nothing_is_shown(url: str) -> None:
    (token,) = parse_qs(urlsplit(url).query)["token"]
    for path in (
        "/",
        "/ws",
        "/static/js/textual.js",
        "/download/x",
        "/?token=",
        f"/?token={token[:-1]}",
        "/none",
    ):
        answer = httpx.get(place(url, path))
        assert answer.status_code == 401, path
        assert "watchroom web" in answer.text
    wrong = {"Cookie": f"{cookie_of(url)}={token[::-1]}"}
    assert httpx.get(place(url), headers=wrong).status_code == 401


def test_pages_of_other_sites_and_other_names_are_turned_away(url: str) -> None:
    (token,) = parse_qs(urlsplit(url).query)["token"]
    known = {"Cookie": f"{cookie_of(url)}={token}"}
    assert httpx.get(place(url), headers=known).status_code == 200
    assert (
        httpx.get(place(url, "/ws"), headers={**known, "Origin": "https://evil.example.org"}).status_code
        == 403
    )
    assert httpx.get(place(url), headers={**known, "Host": "evil.example.org"}).status_code == 421


def test_a_folder_that_is_no_workspace_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, root: Path
) -> None:
    assert refusal(capsys, "web", str(tmp_path))
    Workspace.open(root, agents=["alice"]).close()
    assert misuse(capsys, "web", str(root), "--port", "0")


def test_a_port_that_is_in_use_is_said_before_an_address_is_shown(
    capsys: pytest.CaptureFixture[str], url: str, root: Path
) -> None:
    port = str(urlsplit(url).port)
    for command in (("web", str(root), "--port", port), ("mcp", str(root), "--http", port)):
        told = misuse(capsys, *command)
        assert f"port {port} is in use" in told
        assert "http://" not in told


def test_a_name_or_a_page_that_only_begins_like_this_server_is_turned_away(url: str) -> None:
    (token,) = parse_qs(urlsplit(url).query)["token"]
    here = urlsplit(url).netloc
    known = {"Cookie": f"{cookie_of(url)}={token}"}
    for host in (
        f"{here}.evil.example.org",
        f"{here}0",
        "127.0.0.1",
        f"evil.example.org:{urlsplit(url).port}",
    ):
        assert httpx.get(place(url), headers={**known, "Host": host}).status_code == 421, host
    for origin in (f"http://{here}.evil.example.org", f"https://{here}", "http://127.0.0.1", "null"):
        assert httpx.get(place(url, "/ws"), headers={**known, "Origin": origin}).status_code == 403, origin
