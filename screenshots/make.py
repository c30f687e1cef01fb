"""Take the screenshots: ``python screenshots/make.py [names…] [--to DIR] [--svg] [--list]``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path

from render import exact, render
from rich.console import Console
from shots import SHOTS, Shot
from watchroom import Workspace

PICTURES = Path(__file__).parent / "pictures"


async def take(shot: Shot, workspace: Workspace) -> str:
    """Run the shot's app without a terminal, and return its screen as rich's SVG."""
    app = shot.build(workspace)
    async with app.run_test(size=shot.size) as pilot:
        await pilot.pause()
        if shot.keys:
            await pilot.press(*shot.keys)
        if shot.act:
            await shot.act(pilot)
        await pilot.wait_for_animation()
        await pilot.pause()
        return app.export_screenshot(title=shot.title)


def save(shot: Shot, workspace: Workspace, folder: Path, *, with_svg: bool = False) -> Path:
    """Take the shot, and write NAME.png (and NAME.svg) into ``folder``. Return the path of the PNG."""
    svg = asyncio.run(take(shot, workspace))
    target = folder / f"{shot.name}.png"
    target.write_bytes(render(svg))
    if with_svg:
        target.with_suffix(".svg").write_text(exact(svg), encoding="utf-8")
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which shots (default: all)")
    parser.add_argument("--to", type=Path, default=PICTURES, metavar="DIR", help="where the pictures go")
    parser.add_argument("--svg", action="store_true", help="write the exact SVG beside each picture")
    parser.add_argument("--list", action="store_true", help="only say which shots there are")
    given = parser.parse_args()
    unknown = set(given.names) - {shot.name for shot in SHOTS}
    if unknown:
        parser.error(f"no such shot: {', '.join(sorted(unknown))}")
    wanted = [shot for shot in SHOTS if not given.names or shot.name in given.names]
    if given.list:
        for shot in wanted:
            print(_named(shot))
        return 0
    given.to.mkdir(parents=True, exist_ok=True)
    for team in dict.fromkeys(shot.team for shot in wanted):
        with ExitStack() as stack:
            with Console(stderr=True).status("A team works for a while …"):
                workspace = stack.enter_context(team())
            for shot in wanted:
                if shot.team is team:
                    picture = save(shot, workspace, given.to, with_svg=given.svg)
                    print(f"{_named(shot)}  {picture.stat().st_size / 1024:6.0f} KB  {picture}", flush=True)
    return 0


def _named(shot: Shot) -> str:
    columns, rows = shot.size
    return f"{shot.name:<32} {columns}×{rows}"


if __name__ == "__main__":
    sys.exit(main())
