"""Installed MCP servers: their box has what they need to start, says what it refused, and is opened for one of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Served
from workbench.confinement import abilities
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.services.processes import profiles, server_programs
from workbench.state.settings import Settings
from workbench.upstream.connections import Knowledge

pytestmark = pytest.mark.anyio
needs_box = pytest.mark.skipif(not abilities().abi, reason="nothing confines a program here")

NODE_CRASH = """node:internal/modules/cjs/loader:1080
  throw err;
  ^

Error: Cannot find module '/opt/missing.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
"""
READER = """
import json, sys
BEGUN = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "reader", "version": "1"}}
LISTED = {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"error": {"code": -32601, "message": "no"}}
    if message["method"] in ("initialize", "tools/list"):
        answer = {"result": BEGUN if message["method"] == "initialize" else LISTED}
    if message["method"] == "tools/call":
        try:
            text, failed = open(message["params"]["arguments"]["path"]).read(), False
        except OSError as error:
            text, failed = f"{type(error).__name__}: {error}", True
        answer = {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def test_the_reason_of_a_crash_is_its_error_and_not_its_last_line() -> None:
    knowledge = Knowledge()
    knowledge.tail._chunks.append(NODE_CRASH.encode())
    said = "the connection was closed; the program wrote: Error: Cannot find module '/opt/missing.js'"
    assert knowledge.reason("the connection was closed") == said


def test_the_interpreter_and_the_packages_that_a_program_names_are_open(settings: Settings, tmp_path: Path) -> None:
    python = tmp_path / "pyenv" / "bin" / "python3"
    script = tmp_path / "v1" / "bin" / "their-server"
    package = tmp_path / "node_modules" / "theirs" / "index.js"
    data = tmp_path / "data"
    for path in (python, script, package, data / "file"):
        path.parent.mkdir(parents=True)
    python.touch(0o755)
    script.write_text(f"#!{python}\n")
    script.chmod(0o755)
    package.touch()
    server = StdioServer(command=str(script), args=[str(package), str(data)])
    places = profiles.server_places(settings, server)
    assert {python.parent, python.parent.parent / "lib", package.parent.parent} <= set(places)
    assert data not in places, "what it may read besides is configured"
    own = StdioServer(command=str(script), args=[str(settings.project), "/"])
    assert not {settings.project, Path("/")} & set(profiles.server_places(settings, own))


def test_a_program_that_names_a_file_of_the_project_runs_in_the_project(settings: Settings, tmp_path: Path) -> None:
    (settings.project / "mine.py").touch()
    cases = [(["mine.py"], True), (["-y", "package"], False), (["."], True)]
    for number, (args, expected) in enumerate(cases):
        home = tmp_path / f"home{number}"
        boxed = server_programs.boxed(settings, StdioServer(command=sys.executable, args=args), home)
        assert (boxed.program.directory == settings.project) == expected
        assert boxed.program.roots == [settings.project], "also of one that runs in its home"


def test_a_box_is_not_opened_for_the_files_of_workbench_or_for_what_is_not_there(
    settings: Settings, tmp_path: Path
) -> None:
    settings.home.mkdir(exist_ok=True)
    for place, said in ((".", "contains Workbench's own files"), (".aiswarm", "contains"), ("gone", "does not exist")):
        with pytest.raises(Exception, match=f"INVALID_CONFIGURATION.*{said}"):
            server_programs.boxed(settings, StdioServer(command="x", write=[place]), tmp_path / f"home{place}")


@needs_box
@pytest.mark.long
async def test_a_refusal_of_its_box_is_explained_and_what_one_server_opens_is_its_own(
    served: Served, settings: Settings, on_disk: Path
) -> None:
    wanted = on_disk / "data.csv"
    wanted.write_text("1,2,3")
    (settings.project / "reader.py").write_text(READER)
    call, config = served.workbench.call, {"command": sys.executable, "args": ["reader.py"]}
    await call("add_tool_server", name="closed", config=config)
    await call("add_tool_server", name="opened", config=config | {"read": [str(wanted.parent)]})

    async def read(server: str) -> str:
        try:
            done = await call("call_tool", name=f"{server}__read", arguments={"path": str(wanted)})
        except Exception as error:
            return str(error)
        return json.dumps(done)

    assert "1,2,3" in await read("opened")
    refused = await read("closed")
    assert f"{wanted} cannot be read, by its rules for files: in its configuration, read opens it" in refused
    assert "confinement_read" not in refused
