"""Several processes, each with its own Workbench, change one definition at the same time.

Run as a program, this file is one of them: it adds rules, all at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Child
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.state.settings import Settings

TARGET = "./agents/reviewer"
RULES = 25


async def add_rules(project: Path, prefix: str) -> None:
    """Say when ready, begin when told to, and print how many rules were added and how many were there already."""
    async with Workbench.open(Settings(project=project)) as workbench:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        names = [f"{prefix}-{number}" for number in range(RULES)] + [f"both-{number}" for number in range(5)]
        added = await asyncio.gather(*(add(workbench, name, prefix) for name in names))
        print(json.dumps(dict(zip(names, added, strict=True))), flush=True)


async def add(workbench: Workbench, name: str, text: str) -> bool:
    """Add a rule, if there is none of that name."""
    try:
        await workbench.call("agent_add_rule", agentTarget=TARGET, rule={"name": name, "text": text})
    except Conflict as error:
        assert error.code == "ALREADY_EXISTS", error
        return False
    return True


@pytest.mark.anyio
@pytest.mark.long
@pytest.mark.timeout(120)
async def test_concurrent_processes_lose_no_added_rule(child: Child, workbench: Workbench, repository: Path) -> None:
    await workbench.call("agent_create", agentPath=TARGET, name="Reviewer")
    processes = {prefix: child(__file__, repository, prefix) for prefix in ("a", "b")}
    assert [process.stdout.readline() for process in processes.values()] == ["ready\n"] * 2
    for process in processes.values():
        print("go", file=process.stdin)
    added = {prefix: json.loads(process.stdout.readline()) for prefix, process in processes.items()}
    rules = (await workbench.call("agent_list_rules", agentTarget=TARGET))["rules"]
    by = {rule["name"]: rule["text"] for rule in rules}
    assert len(by) == 2 * RULES + 5
    for prefix, outcome in added.items():
        assert outcome == {name: by[name] == prefix for name in outcome}
    events = (await workbench.call("list_events", kinds=["definition.*"], limit=200))["events"]
    assert [event["kind"] for event in events] == ["definition.created"] + ["definition.changed"] * len(by)
    info = await workbench.call("agent_get_info", agentTarget=TARGET)
    assert events[-1]["data"]["hash"] == info["contentHash"]


if __name__ == "__main__":
    asyncio.run(add_rules(Path(sys.argv[1]), sys.argv[2]))
