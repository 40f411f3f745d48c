"""`python -m tests.mutants [AREA…]`: how many mutants of the code that decides are killed by the nearest tests.

mutmut makes them, and tries each with those tests of `[tool.mutmut]` in pyproject.toml that call the function.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MADE = Path("mutants", "workbench")
AREAS = {
    "rules": "rules",
    "access": "services/access",
    "undo": "services/undo.py",
    "presence": "services/agents/presence.py",
    "attempts": "services/attempts",
    "koi": "koi",
}
SEED = 29
KILLED, NO_TEST = {1, 3, 24, 36, 152, 255, -24}, {5, 33}
"""How a run of tests ends that fails or takes too long, and one without tests."""


def main() -> int:
    """Try the mutants, print the survivors, and how many there are of each area."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"all by default: {', '.join(AREAS)}")
    parser.add_argument("--sample", type=int, help="so many of each area, drawn with the same seed each time")
    parser.add_argument("--children", type=int, default=2, help="processes at a time")
    chosen = parser.parse_args()
    _mutmut("none", check=False)  # makes the mutants, and finds which tests call which function
    drawn = {area: list(_drawn(area, chosen.sample)) for area in chosen.areas or AREAS}
    asked = [name for names in drawn.values() for name in names] if chosen.sample else map(_pattern, drawn)
    _mutmut("--max-children", str(chosen.children), *asked)
    ended = {name: code for area in drawn for name, code in _made(area)}
    print("\n".join(name for names in drawn.values() for name in names if ended[name] not in KILLED))
    for area, names in drawn.items():
        found = Counter("killed" if ended[name] in KILLED else "survived" for name in names)
        without = sum(ended[name] in NO_TEST for name in names)
        share = found["killed"] / max(1, len(names))
        print(f"{area:9} {found['killed']:5} of {len(names):5} are killed: {share:.0%}; {without} without a test")
    return 0


def _mutmut(*arguments: str, check: bool = True) -> None:
    quiet = None if check else subprocess.DEVNULL
    subprocess.run([sys.executable, "-m", "mutmut", "run", *arguments], check=check, stderr=quiet)


def _pattern(area: str) -> str:
    """The prefix of the names of an area's mutants."""
    return f"workbench.{AREAS[area].removesuffix('.py').replace('/', '.')}.*"


def _drawn(area: str, many: int | None) -> list[str]:
    names = sorted(name for name, _ in _made(area))
    return names if many is None else random.Random(SEED).sample(names, min(many, len(names)))


def _made(area: str) -> Iterator[tuple[str, int | None]]:
    place = MADE / AREAS[area]
    for file in [place.with_name(f"{place.name}.meta")] if place.suffix else sorted(place.rglob("*.meta")):
        yield from json.loads(file.read_text())["exit_code_by_key"].items()


if __name__ == "__main__":
    raise SystemExit(main())
