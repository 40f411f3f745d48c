"""`workbench koi` and `workbench personalities` in a project whose node knows another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.conftest import data
from tests.conftest import Command, Served
from tests.services.personalities.nodes import reject
from tests.services.processes.running import serving
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
async def field(tmp_path: Path) -> AsyncIterator[Workbench]:
    """Another project that is served."""
    (tmp_path / "field").mkdir()
    async with serving(Settings(project=tmp_path / "field", port=0)) as served:
        yield served.workbench


async def until(workbench: Workbench, kind: str) -> None:
    """Return once an event of this kind has happened."""
    while not (await workbench.call("list_events", kinds=[kind], wait_seconds=30))["events"]:
        pass


async def test_two_projects_meet_and_one_decides_what_the_other_may_do(
    served: Served, command: Command, field: Workbench
) -> None:
    joined = data(await command("--json", "koi", "join", "--name", "lab"))
    await field.call("join_network", name="field", first_contact=joined["base_url"])
    await field.call("publish_personality", name="bee", traits={"mood": "busy"})
    await until(served.workbench, "personality.published")

    assert "It knows 1 node and 1 personality;" in (await command("koi")).out
    node, state = (await command("koi", "peers")).out.splitlines()[1].split()[:2]
    assert (node.partition("·")[0], state) == ("field", "reachable")
    assert (await command("koi", "peers", node)).out.startswith(f"{node} is reachable")
    listed = (await command("personalities", "list", "bee", "--others")).out.splitlines()
    assert listed[1].split()[:2] == ["bee", "1.0"]
    shown = (await command("personalities", "show", "bee")).out
    assert shown.startswith("bee/1.0 of field")
    assert "busy" in shown

    await field.call("update_traits", name="bee", traits={"mood": "tired", "wings": 4})
    await until(served.workbench, "personality.updated")
    newest = (await command("personalities", "history", "bee")).out.splitlines()[1]
    assert "UPDATE" in newest
    assert "wings" in newest

    decided = (await command("koi", "allow", "field", "*", "always", "--per-minute", "7")).out
    assert "at most 7 times per minute" in decided
    blocked = data(await command("--json", "koi", "block", "field", "--yes"))
    assert blocked["peer"]["state"] == "blocked"
    assert "No personalities are known" in (await command("personalities")).out
    assert data(await command("--json", "koi", "unblock", "field"))["peer"]["state"] != "blocked"


async def test_koi_peers_distinguishes_rejected_events_from_failed_ones(
    served: Served, command: Command, tmp_path: Path
) -> None:
    await served.workbench.call("join_network", name="lab")
    await reject(served.workbench, tmp_path / "picky.pem")
    lines = [line.split() for line in (await command("koi", "peers", "picky")).out.splitlines()]
    assert ["rejects", "orn:agent.personality:odd/1.0", "KOI_REFUSED"] in [line[:3] for line in lines]
    assert ["fails", "with", "orn:agent.personality:large/1.0", "KOI_BAD_ANSWER"] in [line[:4] for line in lines]
