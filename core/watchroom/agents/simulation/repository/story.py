"""The story of the demo in a repository: its commits, and the steps of each agent.

Its file is beside the scenarios, and has its own format.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from watchroom import validation
from watchroom.features.config.rows import Agent
from watchroom.features.trees.git_process import run_git
from watchroom.texts import Language

NAME: Final = "repository"
"""The name of the story for `watchroom demo`."""
PERSON: Final = "person"
"""The id of the worker without a client, who edits files directly."""
_FILE: Final = Path(__file__).parent.parent / "scenarios" / "repository.toml"
_IDENTITY: Final = {"user.name": "demo", "user.email": "demo@watchroom.invalid"}
_SETTINGS: Final = {**_IDENTITY, "commit.gpgSign": "false", "core.autocrlf": "false"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Commit(_Part):
    """A commit of the repository. ``files``: the texts of new files."""

    message: str
    files: Mapping[str, str]


class StoryMove(_Part):
    """A step of a worker.

    - ``kind``: the call of the client's own tool.
    - ``id``: a name to which other moves refer.
    - ``after``: the moves that must end before this move starts.
    - ``say``: the key of the agent's text before the call; empty for none.
    - ``path``: the path of the file.
    - ``old``, ``new``: the passage and its replacement. ``edit`` replaces it in the file. ``write`` replaces
      it in the text that the agent read, and writes the whole text.
    - ``text``: the text of a new file, or the patch.
    - ``command``: the command line of ``run``.
    """

    kind: Literal["read", "edit", "write", "run", "patch"]
    id: str = ""
    after: tuple[str, ...] = ()
    say: str = ""
    path: str = ""
    old: str = ""
    new: str = ""
    text: str = ""
    command: str = ""


class Worker(_Part):
    """An agent, or the person.

    - ``client``: the name of the agent's client; empty for the person.
    - ``task``, ``done``: the keys of the agent's prompt, and of its last message.
    - ``moves``: its steps, in order.
    """

    id: str
    client: str = ""
    task: str = ""
    done: str = ""
    moves: tuple[StoryMove, ...] = Field(alias="move")


class StoryTexts(_Part):
    """The texts in another language."""

    texts: Mapping[str, str]


class Story(_Part):
    """The events in the repository. ``texts``: the texts of workers by key; ``zh`` has them in Chinese."""

    commits: tuple[Commit, ...] = Field(alias="commit")
    workers: tuple[Worker, ...] = Field(alias="agent")
    texts: Mapping[str, str]
    zh: StoryTexts

    @property
    def agents(self) -> list[Agent]:
        """The agents to register."""
        return [Agent(each.id) for each in self.workers if each.client]

    def say(self, key: str, language: Language) -> str:
        """Return the text for ``key``; empty if the key is empty."""
        if not key:
            return ""
        return (self.zh.texts if language == "zh" else self.texts)[key]

    def moves(self) -> Iterator[StoryMove]:
        """Yield the steps of all workers."""
        for worker in self.workers:
            yield from worker.moves


@cache
def load_story() -> Story:
    """Load the story from its file."""
    return Story.model_validate(validation.parse_toml(_FILE.read_text(encoding="utf-8")))


def make_repository(folder: str | os.PathLike[str]) -> None:
    """Make the repository in the new or empty ``folder``. Raise OSError, `GitMissing`, `GitError`."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    run_git(["init", "--quiet", "--template=", "--initial-branch=main"], folder=str(root))
    for name, value in _SETTINGS.items():
        run_git(["config", name, value], folder=str(root))
    for commit in load_story().commits:
        for name, text in commit.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        run_git(["add", "--all"], folder=str(root))
        run_git(["commit", "--quiet", "--no-verify", "--message", commit.message], folder=str(root))
