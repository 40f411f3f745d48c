"""A project that is a KOI node, in a process of its own: `python koi_node.py PROJECT NAME PORT [FIRST_CONTACT]`.

Commands are JSON lines on stdin: `{"put": name, "value": …}`, `{"forget": name}` or `{}`. Each is answered, once it is
committed, with all personalities that the node knows: their values by name. `{"own": names}` is answered with those of
these names that the project has itself, published or still to be published.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.app import Workbench
from workbench.errors import NotFound
from workbench.settings import Settings
from workbench.shells.serve import Servers


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
            made = await workbench.call("get_own_personality", name=name)
            found[name] = made["traits"][0]["value"]
    return found


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
            asked = await own(workbench, command["own"]) if "own" in command else registry(workbench)
            print(json.dumps(asked), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
