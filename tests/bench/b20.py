"""B20: a thousand agent definitions: how long it takes to list them, and to read one."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.bench.project import opened, scratch
from tests.bench.rows import SHORT, Row, Samples, within
from workbench.app import Workbench
from workbench.definition_files.directory import SETTLED_NANOSECONDS

DEFINITIONS = 1_000
READS = 50
AGENT = """\
metadata:
  id: agent-{number}
  name: Agent {number}
  description: One of many.
  mode: autonomous
  created: '2026-01-01T00:00:00Z'
settings:
  temperature: 0.2
  model: anthropic:a-model
providers:
  anthropic:
    ANTHROPIC_API_KEY: env://ANTHROPIC_API_KEY
"""
RULE = "---\npriorityLevel: 10\ninclude: always\n---\n\nCite what you read.\n"

FIRST, AGAIN = "agent_list after a start", "agent_list again"
BY_PATH, BY_NAME = "agent_get_info by path, p50", "agent_get_info by name, p50"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round opens the project anew; the files are in the system's cache."""
    with scratch() as root:
        agents = root / ".aiswarm" / "agents"
        asyncio.run(_prepare(root, 30 if quick else DEFINITIONS))
        made = [(_pyyaml(agents), asyncio.run(_round(root))) for _ in range(rounds if quick else rounds + SHORT)]
    ours = {name: [figures[name] for _, figures in made] for name in (FIRST, AGAIN, BY_PATH, BY_NAME)}
    return {
        name: Samples(figures, [other for other, _ in made] if name == FIRST else (), unit="ms")
        for name, figures in ours.items()
    }


async def _prepare(root: Path, count: int) -> None:
    async with opened(root):
        for number in range(count):
            place = root / ".aiswarm" / "agents" / f"agent-{number}"
            (place / "rules").mkdir(parents=True)
            (place / "agent.yaml").write_text(AGENT.format(number=number))
            (place / "prompt.md").write_text("Review what others wrote.\n")
            (place / "rules" / "cite.md").write_text(RULE)
    await asyncio.sleep(SETTLED_NANOSECONDS / 1e9)  # files that have just changed are read anew


async def _round(root: Path) -> dict[str, float]:
    async with opened(root) as workbench:
        figures = {name: await _milliseconds(workbench, "agent_list") for name in (FIRST, AGAIN)}
        for name, target in ((BY_PATH, "./agents/agent-7"), (BY_NAME, "Agent 7")):
            took = [await _milliseconds(workbench, "agent_get_info", agentTarget=target) for _ in range(READS)]
            figures[name] = statistics.median(took)
        return figures


async def _milliseconds(workbench: Workbench, name: str, **arguments: str) -> float:
    began = time.perf_counter()
    await workbench.call(name, **arguments)
    return (time.perf_counter() - began) * 1e3


def _pyyaml(agents: Path) -> float:
    """Milliseconds to read every agent file with PyYAML."""
    began = time.perf_counter()
    for path in sorted(agents.glob("*/agent.yaml")):
        yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    return (time.perf_counter() - began) * 1e3


ROW = Row(
    "B20",
    "1,000 agent definitions",
    "reading their agent files with PyYAML, in C",
    {FIRST: within(300, "ms"), AGAIN: within(20, "ms"), BY_PATH: within(3, "ms")},
    run,
)
