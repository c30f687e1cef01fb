"""An MCP server without tools, as a program: ``python -I -S idle_server.py``.

The plugin starts a server in every folder, also in folders without a workspace. This program imports little,
because it runs as long as its client.
"""

import json
import sys


def main() -> int:
    """Answer the requests on standard input until it ends. Return the exit status."""
    for line in sys.stdin:
        answer = _answer(line)
        if answer is not None:
            print(json.dumps({"jsonrpc": "2.0", **answer}), flush=True)
    return 0


def _answer(line: str) -> dict[str, object] | None:
    """Return the answer to a message, None if it needs none."""
    try:
        message = json.loads(line)
        number, method, given = message["id"], message["method"], message.get("params")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    if method == "ping":
        return {"id": number, "result": {}}
    if method != "initialize":
        return {"id": number, "error": {"code": -32601, "message": "no workspace of Watchroom here"}}
    version = given.get("protocolVersion") if isinstance(given, dict) else None
    about = {"name": "watchroom", "version": "0"}
    return {"id": number, "result": {"protocolVersion": version, "capabilities": {}, "serverInfo": about}}


if __name__ == "__main__":
    sys.exit(main())
