"""A project that is a KOI node, in a process of its own: `python koi_node.py PROJECT NAME PORT [FIRST_CONTACT]`.

Commands are JSON lines on stdin: `{"put": name, "value": …}`, `{"forget": name}` or `{}`. Each is answered, once it is
committed, with all personalities that the node knows: their values by name. `{"own": names}` is answered with those of
these names that the project has itself, published or still to be published; `{"story": true}` with what the node knows
of its peers, for the report of a failure.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.app import Workbench
from workbench.errors import NotFound
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row
from workbench.store.queries import Query

STORY = {
    "nodes": "SELECT name, base_url, is_relay, failures, retry_at, last_seen, last_error FROM koi_nodes",
    "edges": "SELECT source, target, edge_type, status, rid_types FROM koi_edges",
    "outbox": "SELECT id, node, rid, event_type, queued_at FROM koi_outbox ORDER BY id LIMIT 40",
    "bundles": "SELECT rid, manifest_at, SUBSTR(sha256, 1, 8) AS sha256, origin, changed_at FROM koi_bundles LIMIT 40",
    "tombstones": "SELECT rid, manifest_at, forgotten_at FROM koi_tombstones LIMIT 40",
    "refusals": "SELECT node, code, count, last_at, last_reason FROM koi_refusals ORDER BY last_at",
    "history": "SELECT at, event_type, rid, origin, manifest_at FROM personality_history ORDER BY id DESC LIMIT 30",
    "events": "SELECT at, kind, actor, subject FROM events ORDER BY id DESC LIMIT 30",
}
"""What a story tells, by the query that it comes from."""


async def obey(workbench: Workbench, command: dict[str, Any]) -> None:
    """Do what a command asks for."""
    if "put" in command:
        traits = {"value": command["value"]}
        await workbench.call("publish_personality", name=command["put"], version="1", traits=traits)
    elif "forget" in command:
        await workbench.call("withdraw_personality", name=command["forget"])


def registry(workbench: Workbench) -> dict[str, Any]:
    """The values of the personalities that are known."""
    known = workbench._ctx.node.directory.latest()
    return {one.profile.rid.name: one.profile.traits[0].value for one in known}


async def own(workbench: Workbench, names: list[str]) -> dict[str, Any]:
    """The values of the project's own profiles, by name."""
    found = {}
    for name in names:
        with suppress(NotFound):
            personality = await workbench.call("get_own_personality", name=name)
            found[name] = personality["traits"][0]["value"]
    return found


async def story(workbench: Workbench) -> dict[str, list[str]]:
    """The node's knowledge of its peers and its exchanges with them: lines of text by subject."""

    def question(tx: Reader) -> dict[str, list[str]]:
        return {name: [_line(row) for row in tx.all(Query(name, sql))] for name, sql in STORY.items()}

    presence, now = workbench._ctx.node.presence, asyncio.get_running_loop().time()
    doing = [f"now={workbench.store.now()}", f"registry={registry(workbench)}"]
    if presence is not None:
        ago = {peer: round(now - at, 3) for peer, at in presence.compared.items()}
        doing += [_line({"running": sorted(presence.tasks._running), "compared_seconds_ago": ago})]
    return {"node": doing, **await workbench.store.read(question)}


def _line(row: Row) -> str:
    """A row as text, with the names of nodes instead of their RIDs."""
    text = " ".join(f"{name}={value}" for name, value in row.items())
    return re.sub(r"orn:koi-net\.node:([\w.-]+)\+[0-9a-f]{64}", r"\1", text)


async def main() -> None:
    """Serve until stdin ends."""
    project, name, port, *contact = sys.argv[1:]
    settings = Settings(project=Path(project), koi=True, koi_name=name, koi_first_contact="".join(contact))
    loop = asyncio.get_running_loop()
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        info = await servers.start(int(port))
        print(json.dumps(info.url), flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            await obey(workbench, command)
            if "story" in command:
                answer: dict[str, Any] = await story(workbench)
            else:
                answer = await own(workbench, command["own"]) if "own" in command else registry(workbench)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
