"""What real clients sent to their hooks, and a client that sends it again.

The files in ``shapes`` have, for each case, the events in their order, each with the files that had changed
since the event before: by the client, its commands or a person. ``$REPO`` is its folder. They
were recorded without a real account, against a model that says what a script tells it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trees.git_repository import Repository
from watchroom.agents.clients import client_program
from watchroom.agents.clients.client_program import Stream, read_chunks, read_head

FILES: Final = {"a.txt": "one\ntwo\nthree\nfour\nfive\n", "b.txt": "b\n", "c.txt": "c1\nc2\nc3\n"}
"""The repository of each case."""
_SHAPES: Final = Path(__file__).parent / "shapes"
_SECONDS: Final = 60
Case = list[dict[str, Any]]


def read_cases(client: str) -> dict[str, Case]:
    """Return the recorded cases of ``client``, by name."""
    cases: dict[str, Case] = json.loads((_SHAPES / f"{client}.json").read_text("utf-8"))["cases"]
    return cases


class RecordedClient:
    """Sends the events of a case to the service, for a workspace in ``repository``."""

    def __init__(self, repository: Repository, client: str) -> None:
        self._repository = repository
        self._client = client
        self.denied: list[str] = []
        """Why calls were refused."""
        self.told: list[str] = []
        """What the model got to read."""
        self.changed: list[Mapping[str, Any]] = []
        """The arguments that replaced those of calls."""

    def replay(self, case: Case) -> None:
        """Make the files as they were before each event, and send it."""
        for step in case:
            for name, text in step.get("files", {}).items():
                if text is None:
                    (self._repository.folder / name).unlink()
                else:
                    self._repository.write(name, text)
            self._send(step["event"])

    def _send(self, event: Mapping[str, Any]) -> None:
        body = json.dumps(event).replace("$REPO", str(self._repository.folder)).encode()
        fields = [("root", str(self._repository.root)), ("client", self._client)]
        with client_program.open_connection() as connection:
            connection.sendall(client_program.request("POST", "/hook", fields, body))
            stream = Stream(connection, _SECONDS)
            status, answer = read_head(stream), read_chunks(stream)
        assert status == 200, answer
        given = json.loads(answer or "{}")
        said = given.get("hookSpecificOutput", {})
        if given.get("decision") == "deny":
            self.denied.append(given["reason"])
        if said.get("tool_input"):
            self.changed.append(said["tool_input"])
        if said.get("permissionDecision") == "deny":
            self.denied.append(said["permissionDecisionReason"])
        if said.get("additionalContext"):
            self.told.append(said["additionalContext"])
        if said.get("updatedInput"):
            self.changed.append(said["updatedInput"])
