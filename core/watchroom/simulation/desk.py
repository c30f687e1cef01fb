"""What an agent has before it: who it is, what it remembers, and the pace at which it works."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from watchroom.model import Json
from watchroom.rules.config import Agent
from watchroom.simulation.growing import Author
from watchroom.simulation.material import Document, material
from watchroom.simulation.roster import role_of, squad_of
from watchroom.simulation.steps import Call, Pause, Result, Script

STORY_TEAM: Final = ("researcher", "analyst", "writer")
_STEADY: Final = (0.6, 2.5)
_BURST: Final = (0.2, 0.55)
_BRISK: Final = (0.3, 0.9)
_QUIET: Final = (5.0, 11.0)
_MOST_SCRATCH: Final = 5
_SMALL_TEAM: Final = 5
_IN_COMMON: Final = 1.0


class Rhythm:
    """Pauses between calls: steady for a while, then a burst or a quiet spell."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._range = _STEADY
        self._left = rng.randint(4, 14)

    def hurry(self, steps: int) -> None:
        """Go on at a brisk pace for so many steps."""
        self._range, self._left = _BRISK, steps

    def pause(self) -> Pause:
        if self._left > 0:
            self._left -= 1
            return Pause(self._rng.uniform(*self._range))
        mood = self._rng.random()
        if mood < 0.3:
            self._range, self._left = _BURST, self._rng.randint(6, 16)
        else:
            self._range, self._left = _STEADY, self._rng.randint(8, 20)
        return Pause(self._rng.uniform(*(_QUIET if mood > 0.7 else self._range)))


class AgentContext:
    """One agent's state. Only its own script touches it."""

    def __init__(self, agent: Agent, team: Sequence[Agent], seed: int) -> None:
        self.agent = agent
        self.me = me = agent.id
        self.role = role_of(me)
        self.rng = Random(f"{seed}:{me}")
        self.team = tuple(team)
        self.others = tuple(sorted(each.id for each in team if each.id != me))
        self.material = material()
        self.author = Author(self.role, self.rng, self.material, self.others)
        self.rhythm = Rhythm(self.rng)
        self.story_is_told = not set(STORY_TEAM) <= {me, *self.others}
        self.turn = 0
        self.files: dict[str, str] = {}
        self.scratch: list[str] = []
        self.shared: set[str] = set()
        self._left_alone: dict[str, int] = {}
        squad = squad_of(me)
        self._near = tuple(agent for agent in self.others if squad_of(agent) == squad)
        self._folder = f"line-{squad}/" if squad > 1 else ""

    def call(self, tool: str, attempt: int = 0, **arguments: Json) -> Script[Result]:
        """Call a tool, after the pause that is due."""
        yield self.rhythm.pause()
        return (yield Call(tool, arguments, attempt))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    @property
    def writes_chinese(self) -> bool:
        return self.role == "translator"

    def say(self, kind: str, /, **given: object) -> str:
        """A message of that kind, in Chinese if the agent writes Chinese and there is one."""
        return self.author.filling(**given).one_of(self.templates(kind))

    def templates(self, kind: str) -> tuple[str, ...]:
        """What the agent may say of that kind, with its slots."""
        said = self.material.said.by_kind
        return said.get(f"{kind}_zh", said[kind]) if self.writes_chinese else said[kind]

    def thanks(self) -> str:
        slot = "zh_thanks" if self.writes_chinese else "thanks"
        return str(self.author.filling()[slot])

    def listed(self, words: Sequence[str]) -> str:
        return ("、" if self.writes_chinese else ", ").join(words)

    def place(self, document: Document) -> str:
        """The path of a document: numbered squads mostly study a line of their own, in its folder."""
        common = not self._folder or self.chance(_IN_COMMON / (1 + len(self.others)))
        return document.path if common else self._folder + document.path

    def leave_alone(self, path: str, turns: int) -> None:
        self._left_alone[path] = self.turn + turns

    def leaves_alone(self, path: str) -> bool:
        return self._left_alone.get(path, 0) > self.turn

    def colleague(self) -> str:
        """Someone else, more often of the same squad."""
        return self.rng.choice(self._near if self._near and self.chance(0.75) else self.others)

    @property
    def crowding(self) -> float:
        """How many times a small team share this agent's files: a large team must share out its work."""
        return max(1.0, (1 + len(self._near)) / _SMALL_TEAM)

    @property
    def has_much_scratch(self) -> bool:
        return len(self.scratch) >= _MOST_SCRATCH
