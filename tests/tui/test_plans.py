"""Plans in the dashboard: beside their agents, and as a need if two of them overlap."""

from __future__ import annotations

from calls import ok
from tui.driver import WIDE, dashboard
from tui.test_queue import is_closed, marks_as_seen
from watchroom import Toolbox, Workspace
from watchroom_cli.plain.sentences import alert_wording


async def test_an_overlap_is_a_need_that_leads_to_the_later_agent(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "declare_plan", paths=["src/api/**"])
    ok(bob, "declare_plan", paths=["src/api/**", "docs/api.md"])
    async with dashboard(workspace, size=WIDE) as user:
        await user.sees("src/api/**", "alice and bob both plan to change it")
        await user.sees("plans src/api/**, docs/api.md")
        (need,) = user.model.needs
        texts = {language: alert_wording(language).describe(need).text for language in ("en", "zh")}
        assert texts == {
            "en": "alice and bob both plan to change src/api/**",
            "zh": "alice 和 bob 都计划修改 src/api/**",
        }
        await user.press("!")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.until(lambda: user.cursor("agents").agent.id == "bob", "bob")
        await marks_as_seen(user, "both plan to change")
        await is_closed(user, workspace)
