"""An agent that goes in circles is paused, without a dashboard, and once."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from runtime.scripted import at_work, say, status_is, until
from runtime.weather import Calls, call, calling
from runtime.working import HELLO, SAYS, chat
from watchroom import Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.sessions.runtime import Limits, RuntimeConfig
from watchroom.kernel.background import EVERY_ROW
from watchroom.model import Row

FOR_EVER = RuntimeConfig(limits=Limits(steps=None, errors=None))


def needs(workspace: Workspace) -> list[tuple[str, str, str]]:
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows(0, limit=10_000))
    return [(need.kind, need.agent, need.row.message) for need in fold.model().needs]


def add_line(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(line)


def change(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


async def test_a_loop_is_paused_and_goes_on_when_a_person_says_so(tmp_path: Path) -> None:
    with (
        Workspace.open(tmp_path / "team", ["alice", "bob"]) as workspace,
        Workspace.open(tmp_path / "team", create=False) as other,
    ):
        config = Path(workspace.root, ".watchroom", "config.toml")
        add_line(config, "[breaker]\nsteps = 10\n")
        workspace.check([config])
        # Another process looks at the same rows, and lags behind.
        may_go_on, has_seen_it = Event(), Event()

        def look(row: Row) -> None:
            may_go_on.wait(20)
            if row.kind == "human" and row.tool == "resume_agent":
                has_seen_it.set()

        other.background.subscribe((EVERY_ROW,), look)
        circle = [calling(call("tool", f"c{turn}")) for turn in range(200)]
        agent = chat(*circle, SAYS, tools={"tool": Calls("fine")})
        async with (
            workspace.sessions.begin("alice", agent, FOR_EVER, messages=HELLO) as session,
            at_work(session),
        ):
            await status_is(session, "paused")
            said = "Paused: 10 steps with no new text and no new version of a file."
            await until(lambda: needs(workspace) == [("breaker", "alice", said)])
            pauses = [row for row in workspace.journal.rows(0, limit=10_000) if row.tool == "pause_agent"]
            assert [(row.actor, row.path) for row in pauses] == [("system", "alice")]
            circled = pauses[0].seq
            change(config, "steps = 10", "steps = 7")
            workspace.check([config])
            say(workspace, "resume_agent", agent_id="alice")
            resumed = workspace.journal.last_seq()
            # The circle that it sees only now was answered by the person's word. Nothing awaits until then: the
            # session does not go on meanwhile.
            may_go_on.set()
            assert has_seen_it.wait(20)
            await until(lambda: "Paused: 7 steps" in str(needs(workspace)))
            (again,) = (
                row for row in workspace.journal.rows(circled, limit=10_000) if row.tool == "pause_agent"
            )
            assert int(str(again.detail["row"])) > resumed
            change(config, "steps = 7", "steps = 0")
            workspace.check([config])
            say(workspace, "resume_agent", agent_id="alice")
            await until(lambda: not needs(workspace))
