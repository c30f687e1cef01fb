"""The MCP server over HTTP. The token of a request identifies an agent, or a person with read-only access."""

from __future__ import annotations

import socket
from collections.abc import Collection, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.model import HUMAN_PREFIX
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.call_tasks import CallTasks
from watchroom.serving.notifications import ChangeNotifier, Context
from watchroom.serving.resources import WorkspaceResources
from watchroom.serving.server import make_server, take_messages
from watchroom.serving.server_card import card_routes
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

PATH: Final = "/mcp"
LOOPBACK: Final = "127.0.0.1"
MAX_REQUEST_BYTES: Final = 24 * 1024 * 1024
"""Maximum bytes of a request: the longest text with its JSON escapes."""

_HOST_NAMES: Final = frozenset({LOOPBACK, "localhost"})
"""Names of this machine in a Host header."""
_DEFAULT_PORT: Final = 80
"""The port if the Host header has none."""
_SHUTDOWN_SECONDS: Final = 2
"""Seconds for calls to end after the server is stopped. A call that waits for a person is cancelled."""


class _TokenVerifier:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def verify_token(self, token: str) -> AccessToken | None:
        actor = await run_in_thread(self._workspace.access.authenticate, token)
        return None if actor is None else AccessToken(token=token, client_id=actor, scopes=[])


class _SameOrigin:
    """Refuses requests with a foreign Host header or Origin header, against DNS rebinding.

    The whole header is compared, because ``127.0.0.1:8765.example.org`` is a foreign host.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := _refusal(Headers(scope=scope), scope["server"][1])):
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _refusal(headers: Headers, port: int) -> Response | None:
    hosts = {f"{name}:{port}" for name in _HOST_NAMES} | (
        _HOST_NAMES if port == _DEFAULT_PORT else frozenset()
    )
    given = headers.getlist("host"), headers.getlist("origin")
    host, origin = ([each.lower() for each in values] for values in given)
    if len(host) != 1 or host[0] not in hosts:
        return PlainTextResponse("Invalid Host header", 421)
    if origin and (len(origin) != 1 or origin[0] not in {f"http://{each}" for each in hosts}):
        return PlainTextResponse("Invalid Origin header", 403)
    return None


def http_app(
    workspace: Workspace,
    *,
    language: Language = "en",
    toolsets: Collection[str] | None = None,
    approval_tools: Collection[str] = (),
) -> Starlette:
    """Return the MCP server of ``workspace`` as an ASGI application at `PATH`.

    - ``language``: the language of resource descriptions.
    - ``toolsets``: offer only these sets of tools, default all.
    - ``approval_tools``: people approve the calls of these tools.
    """
    toolboxes: dict[str, Toolbox] = {}

    async def toolbox_of(context: Context) -> Toolbox:
        actor = _token_of(context).client_id
        toolbox = toolboxes.get(actor)
        return toolboxes.setdefault(actor, make_toolbox(actor)) if toolbox is None else toolbox

    def make_toolbox(actor: str) -> Toolbox:
        if not actor.startswith(HUMAN_PREFIX):
            return workspace.tools(actor)
        return workspace.tools_for_human(actor.removeprefix(HUMAN_PREFIX), reads_only=True)

    def is_authorized(context: Context) -> bool:
        token = _token_of(context)
        return workspace.access.authenticate(token.token) == token.client_id

    resources = WorkspaceResources(workspace.journal, language)
    notifier = ChangeNotifier(workspace.background, resources, is_authorized=is_authorized)
    approvals = CallApprovals(workspace, approval_tools)
    messages = partial(take_messages, workspace)
    server = make_server(
        toolbox_of,
        resources,
        approvals,
        take_messages=messages,
        toolsets=toolsets,
        notifier=notifier,
        tasks=CallTasks(workspace, approvals),
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        # The library's check compares only the beginning of a name. `_SameOrigin` compares the whole name.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=MAX_REQUEST_BYTES,
        auth=AuthSettings(issuer_url=AnyHttpUrl(f"http://{LOOPBACK}"), resource_server_url=None),
        token_verifier=_TokenVerifier(workspace),
        custom_starlette_routes=card_routes(PATH, catalogue(language)),
    )
    app.add_middleware(_SameOrigin)
    app.state.notifier = notifier
    return app


def _token_of(context: Context) -> AccessToken:
    request = context.request
    user = request.user if isinstance(request, Request) else None
    if not isinstance(user, AuthenticatedUser):
        raise PermissionError("a request without a token passed the authentication")
    return user.access_token


class BackgroundServer(uvicorn.Server):
    """Serves ``app`` on listening sockets. For a process that handles its signals itself. `serve` runs until
    `should_exit` is set."""

    def __init__(self, app: Starlette) -> None:
        self._notifier: ChangeNotifier = app.state.notifier
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                lifespan="on",
                # WebSockets are not used, and their library loads slowly.
                ws="none",
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the clients' subscriptions, and then the server."""
        self._notifier.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do not change the handlers of signals."""
        yield
