"""A client of the Agent Client Protocol that repeats each prompt, and its record for Watchroom."""

import json
import sys
from typing import Any

from watchroom.agents.clients.adapter import AcpSupport

CLIENT = AcpSupport(
    command=(sys.executable, "-c", "import watchroom_echo_client as client; client.main()"),
    install="pip install watchroom-echo-client",
)


def main() -> None:
    """Answer the requests on standard input, one JSON object a line."""
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            result = answer(message["method"], message.get("params", {}))
            send({"id": message["id"], "result": result})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        return {"protocolVersion": 1, "agentInfo": {"name": "echo", "version": "0.1.0"}}
    if method == "session/new":
        return {"sessionId": "echo-1"}
    if method == "session/prompt":
        text = "".join(part.get("text", "") for part in params["prompt"])
        content = {"type": "text", "text": f"You said: {text}"}
        update = {"sessionUpdate": "agent_message_chunk", "messageId": "1", "content": content}
        send({"method": "session/update", "params": {"sessionId": params["sessionId"], "update": update}})
        return {"stopReason": "end_turn"}
    return {}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
