"""Forms of secrets × ways in × ways out: what programs, models and agents give to be read is recorded without secrets.

Each way in takes all forms of a secret of its own, and a secret that is known, in clear and encoded. Then every way out
is searched for all of them: a leak says where it came in, and where it comes out.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from kernel_ext.panels import sources
from tests import given
from tests.analytics.conftest import rows
from tests.conftest import Admit, Admitted, Command, Served, limited
from tests.rules.secrets.test_forms import SECRET, forms
from tests.services.conversations.conftest import Chat, define
from tests.services.tools.conftest import READING, Shelf, begin, ended_with
from tests.services.worktrees.lab import ask, commit, settled
from workbench.analytics.export import FORMATS, export
from workbench.analytics.live import Live
from workbench.analytics.views import VIEWS
from workbench.app import Workbench
from workbench.errors import Unavailable, WorkbenchError
from workbench.functions.output import CallLog
from workbench.ops import Ctx
from workbench.rules.secrets.mask import Mask
from workbench.services.tools import catalogue
from workbench.services.tools.sources import SOURCES
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.state import outside
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

TABLES = """
{{sqlite}}SELECT name FROM sqlite_master WHERE type = 'table'{{end}}
{{postgres}}SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'{{end}}
"""
KNOWN = "correct horse & battery/staple+7"
"""A secret without a form, that the project knows."""
ENCODED = (KNOWN, b64encode(KNOWN.encode()).decode().rstrip("=")[:-1], quote(KNOWN, safe=""), quote(KNOWN))
LOOK = {"name": "look", "description": "Look.", "parameters": {"type": "object"}, "version": "1", "read_only": True}
GIVEN = {
    ("answer", "file: agents/helper/agent.yaml"),
    ("answer", "file: coordination.db-wal"),
    ("answer", "store: definition_contents"),
}
"""The script of the model is in its definition, which is never rewritten."""


@dataclass
class Said:
    """The secrets of one way in, which no other one is given."""

    way: str
    secret: str
    known: tuple[str, ...] = ENCODED

    @property
    def some(self) -> str:
        """As many forms as a reason may have."""
        return "\n".join((f"by {self.way}", *forms(self.secret)[:8], *self.known[:1]))

    @property
    def every(self) -> str:
        """All of them, on lines; also one in colours, and one that a progress line overwrites."""
        loud = (f"\x1b[32msk-{self.secret}\x1b[0m", f"token=\x1b[1m{self.secret}\x1b[0m", f"1%\r2% key={self.secret}")
        return "\n".join((f"by {self.way}", *forms(self.secret), *loud, *self.known))

    @property
    def data(self) -> dict[str, Any]:
        """The forms as JSON, also in keys and after them."""
        return {
            "said": self.every,
            self.some: [self.every],
            "api_key": self.secret,
            "deep": [{"clientSecret": self.secret}],
        }


@dataclass
class Lab:
    """A served project with agents."""

    served: Served
    ada: Admitted
    paula: Admitted
    shelf: Shelf
    settings: Settings
    ids: dict[str, Any] = field(default_factory=dict)

    @property
    def workbench(self) -> Workbench:
        return self.served.workbench

    async def say(self, by: Admitted, op: str, **arguments: Any) -> dict[str, Any]:
        workbench = self.workbench
        return await workbench.dispatch(await workbench.renewed(by.caller), op, arguments)

    async def claimed(self) -> int:
        """A task that ada works on."""
        task_id = await given.task(self.workbench)
        await self.say(self.ada, "claim_task", task_id=task_id)
        return task_id


async def progress(lab: Lab, said: Said) -> None:
    task_id = await lab.claimed()
    await lab.say(lab.ada, "report_task_progress", task_id=task_id, progress_note=said.every)
    await lab.say(lab.ada, "release_task", task_id=task_id)
    await lab.workbench.call("cancel_task", task_id=task_id)


async def result(lab: Lab, said: Said) -> None:
    task_id = await lab.claimed()
    artifacts = [said.some, f"{KNOWN}.csv"]
    await lab.say(lab.ada, "complete_task", task_id=task_id, result_data=said.data, artifacts=artifacts)


async def failure(lab: Lab, said: Said) -> None:
    task_id = await lab.claimed()
    why = {"error_message": said.every, "error_class": f"E {KNOWN}", "retryable": False}
    await lab.say(lab.ada, "fail_task", task_id=task_id, **why)


async def reasons(lab: Lab, said: Said) -> None:
    task_id = await lab.claimed()
    await lab.say(lab.ada, "release_task", task_id=task_id, reason=said.some)
    mine = int((await given.whole_task(lab.workbench, by=lab.paula))["id"])
    await lab.say(lab.paula, "reassign_task", task_id=mine, assigned_agent_id="ada", reason=said.some)
    for op in ("cancel_task", "retry_task", "cancel_task"):
        await lab.say(lab.paula, op, task_id=mine, reason=said.some)
    await lab.say(lab.paula, "create_worktree", name="lab")
    await lab.say(lab.paula, "discard_worktree", worktree_name="lab", reason=said.some)


async def context(lab: Lab, said: Said) -> None:
    content = {"title": said.some[:450], "content": said.every, "metadata": said.data}
    reply = await lab.say(lab.ada, "write", content=content)
    await lab.say(lab.ada, "update_context", context_id=reply["context_id"], content=said.every, metadata=said.data)


async def registration(lab: Lab, said: Said) -> None:
    about = {"name": f"sk-{said.secret}", "capabilities": said.data}
    await lab.say(lab.ada, "register", **about, connection_id=f"ghp_{said.secret}")
    await lab.say(lab.ada, "register_agent", **about, persona_id="tester")


async def tool(lab: Lab, said: Said) -> None:
    """A tool of an MCP server, which says how far it is, returns, fails and breaks."""

    async def run(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        await call.surroundings.progress(1, 2, said.some)
        how = call.arguments["how"]
        if how == "fails":
            raise Unavailable("DOWN", said.every)
        if how == "breaks":
            raise ValueError(said.every)
        return ToolOutcome([{"type": "text", "text": said.every}], said.data)

    lab.shelf.put("hub__say", run, hints=READING)
    for how in ("returns", "fails", "breaks"):
        await ended_with(begin(lab.workbench, "hub__say", {"how": how, **said.data}))


async def answer(lab: Lab, said: Said) -> None:
    """A model that says it word by word, and calls a tool that repeats it."""
    lab.shelf.put("hub__echo", hints=READING)
    said = replace(said, known=())  # the script would have it, which `GIVEN` says
    script = [{"say": said.every, "calls": [{"tool": "hub__echo", "input": said.data}]}, {"say": said.every}]
    about = {"definition": define(lab.settings, script), "tools": ["hub"]}
    chat = Chat(lab.workbench, (await lab.workbench.call("create_conversation", **about))["id"])
    await chat.ask("Say it.")
    lab.ids["conversation_id"] = chat.id


async def function(lab: Lab, said: Said) -> None:
    """A function of a notebook: what it prints, piece by piece, reports and returns."""
    call = lab.workbench.call
    await call("offer_tools", host_id="k", name="kernel 1", tools=[LOOK])
    for fails in (False, True):
        calling = asyncio.create_task(call("call_tool", name="look", arguments=said.data))
        [taken] = (await call("take_tool_calls", host_id="k", wait_seconds=30))["calls"]
        log = CallLog(lab.settings.tool_logs / f"{taken['call_id']}.log", Mask([KNOWN]))
        for start in range(0, len(said.every), 7):
            log.write(said.every[start : start + 7])
        log.close()
        one = {"host_id": "k", "call_id": taken["call_id"]}
        await call("report_tool_progress", **one, progress=1, total=None, message=said.some[:999])
        error = {"code": "TOOL_FAILED", "message": said.every, "details": {}, "status": 503}
        await call("finish_tool_call", **one, **({"error": error} if fails else {"answer": {"value": said.data}}))
        await asyncio.gather(calling, return_exceptions=True)
        lab.ids["call_id"] = taken["call_id"]


async def run(lab: Lab, said: Said) -> None:
    """A run of an experiment, as its program records it."""
    call, place = lab.workbench.call, lab.settings.project
    about = {"parameters": said.data, "environment": {"env": said.every}}
    run_id = (await call("start_run", name="trial", **about))["id"]
    texts = {f"said/{number}": text[:100] for number, text in enumerate((*forms(said.secret)[:8], KNOWN))}
    await call("record_metrics", run_id=run_id, metrics={**texts, "list": [1.5, f"token={said.secret}"]})
    name = f"sk-{said.secret}.txt"
    (place / name).write_text("x")
    await call("add_run_artifact", run_id=run_id, path=name)
    (place / name).unlink()
    await call("end_run", run_id=run_id, state="failed", error_code=KNOWN, error=said.every)
    lab.ids["run_id"] = run_id


WayIn = Callable[[Lab, Said], Awaitable[None]]
WAYS_IN: Sequence[WayIn] = (*(progress, result, failure, reasons, context, registration, tool, answer, function, run),)


SAY = """
import json, os, pathlib, sys, time
text, wb = pathlib.Path(os.environ["SAID"]).read_text(), os.environ
half = len(text) // 2
for part in (text[:half], text[half:], f"\\n{wb['DB_PASSWORD']} {wb['SERVICE_LOGIN']}\\n"):
    sys.stdout.write(part)
    sys.stdout.flush()
    time.sleep(0.05)
print(text, file=sys.stderr)
print(f"\\r9 %\\r10 % {text.splitlines()[1]}", *map(ascii, text.splitlines()[:4]), sep="\\r")
with open(wb["WORKBENCH_RESULT"], "w") as result:
    json.dump({"result": {"said": text, wb["DB_PASSWORD"]: 1}, "artifacts": [f"{wb['DB_PASSWORD']}.csv"]}, result)
sys.exit(int(sys.argv[1]))
"""
SERVER = """
import os, pathlib, sys
from mcp.server import MCPServer
text = pathlib.Path(sys.argv[1]).read_text()
print(text, file=sys.stderr, flush=True)
server = MCPServer("loud", version="1")
server.tool(name="look", title="Look", description=text)(lambda: text)
server.run("stdio")
"""
GATE = "until test -e gate.txt || test $PWD = /; do cd ..; done; cat gate.txt; exit 1"


def written(lab: Lab, said: Said) -> str:
    """The path of a file, outside of the project and above the gates, with what a program is to say."""
    place = outside.directory() / f"{said.way}.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(said.every, "utf-8", newline="")
    return str(place)


async def command(lab: Lab, said: Said) -> None:
    """Commands of an agent, which succeed and fail: what they print in pieces, in colours, and their result."""
    (script := lab.settings.project.parent / "say.py").write_text(SAY)
    variables = {"SAID": written(lab, said), "DB_PASSWORD": KNOWN, "SERVICE_LOGIN": f"sk-{said.secret}"}
    await lab.workbench.call("spawn_agent", persona_id="implementer", name="walt", environment=variables)
    for status, state in ((0, "completed"), (1, "failed")):
        run = f"{sys.executable} {script} {status}"
        task_id = await given.task(lab.workbench, run=run, max_retries=0, assigned_agent_id="walt")
        await given.reached(lab.workbench, task_id, state)
    lab.ids["agent_id"] = "walt"


async def gate(lab: Lab, said: Said) -> None:
    """A command that has to pass before a merge."""
    written(lab, said)
    commit(await given.worktree(lab.workbench, "merged"))
    await settled(lab.workbench, await ask(lab.workbench, "merged"))


async def server(lab: Lab, said: Said) -> None:
    """A program that offers tools: how it describes them, and what it writes to its standard error."""
    (script := lab.settings.project.parent / "server.py").write_text(SERVER)
    config = {"command": sys.executable, "args": [str(script), written(lab, said)]}
    await lab.workbench.call("add_tool_server", name="loud", config=config)
    await lab.workbench.call("call_tool", name="loud__look", arguments={})
    lab.ids["name"] = "loud__look"


WAYS_IN_OF_PROGRAMS = (command, gate, server)


@pytest.fixture
async def lab(served: Served, admit: Admit, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Lab:
    workbench, shelf = served.workbench, Shelf()
    monkeypatch.setattr(catalogue, "SOURCES", (*SOURCES, shelf))
    workbench._ctx.secrets.add([KNOWN])
    await given.project(workbench)
    session = (await given.session(workbench, "s"))["id"]
    ada, paula = await admit("ada", session_id=session), await admit("paula", "planner", session_id=session)
    return Lab(served, ada, paula, shelf, settings)


async def answers(lab: Lab) -> AsyncIterator[tuple[str, object]]:
    """The answers of every reading operation, about everything in the project."""
    call, ids = lab.workbench.call, {name: [value] for name, value in lab.ids.items()}
    for name, op, rows_name in (
        ("task_id", "list_tasks", "tasks"),
        ("call_id", "list_tool_calls", "calls"),
        ("approval_id", "list_approvals", "approvals"),
    ):
        ids[name] = [one.get("id", one.get(name)) for one in (await call(op))[rows_name]]
    ids["context_id"] = [one["id"] for one in (await call("read"))["data"]]
    ids["agent_id"] = [*ids.get("agent_id", ()), "ada", "paula"]
    ids["resource"] = ["contexts", "agents", "events", "tasks", "sessions"]
    for op in lab.workbench.catalogue.values():
        needed = op.input_schema.get("required", [])
        if not op.reads or len(needed) > 1 or not ids.keys() >= set(needed):
            continue
        most = {name: value for name, value in {"limit": 500, "wait_seconds": 0}.items() if name in op.parameters}
        for given_id in ids[needed[0]] if needed else [None]:
            try:
                yield op.name, await call(op.name, **most, **dict.fromkeys(needed, given_id))
            except WorkbenchError as error:  # such as of an agent without a process
                yield op.name, error.as_dict()


async def frames(lab: Lab) -> AsyncIterator[tuple[str, object]]:
    """The frames sent to followers of the project and to the page of a panel."""
    last = (await lab.workbench.call("list_newest_events", limit=1))["events"][0]["id"]
    async with lab.workbench.feed.subscribe("*", after=0) as events:
        while (event := await anext(events)).id < last:
            yield "frame", str(event)
    for name, source in {**sources.SOURCES, **sources.UNSENT}.items():
        yield f"panel: {name}", [*(await source.read(lab.workbench.call)).items()]


async def tables(lab: Lab, place: Path) -> AsyncIterator[tuple[str, object]]:
    """The rows of all SQL views and of the export."""
    live = Live(files=True)
    for view in VIEWS:
        yield f"sql: {view}", await rows(live, lab.workbench, f"SELECT * FROM {view}")
    for form in FORMATS:
        await asyncio.to_thread(export, lab.settings, place / form, form)
        for file in (place / form).iterdir():
            found = f"read_parquet('{file}')" if form == "parquet" else None
            yield (
                f"export: {file.name}",
                (await rows(live, lab.workbench, f"SELECT * FROM {found}") if found else file.read_text("utf-8")),
            )


async def files(lab: Lab) -> AsyncIterator[tuple[str, object]]:
    """The files in the project's directory."""
    for (table,) in await given.rows(lab.workbench, TABLES):
        yield f"store: {table}", str(await given.rows(lab.workbench, f"SELECT * FROM {table}"))
    for file in lab.settings.home.rglob("*"):
        if file.is_file():
            yield f"file: {file.relative_to(lab.settings.home)}", file.read_bytes().decode("utf-8", "ignore")


async def commands(run: Command) -> AsyncIterator[tuple[str, object]]:
    """The JSON output of commands."""
    for words in (["tasks"], ["events"], ["agents"], ["runs"], ["contexts"], ["tools", "calls"], ["inbox"]):
        ran = await run(*words, "--json")
        yield f"command: {words}", ran.out + ran.err


async def searched(lab: Lab, run: Command, place: Path, ways_in: Sequence[WayIn]) -> set[tuple[str, str]]:
    """The leaks, each as a way in and a way out. Something of each way in comes out."""
    said = [Said(way.__name__, f"{SECRET}{number:02}") for number, way in enumerate(ways_in)]
    for way, one in zip(ways_in, said, strict=True):
        await way(lab, one)
    leaks, seen = set(), set()
    for ways_out in (answers(lab), frames(lab), tables(lab, place), files(lab), commands(run)):
        async for out, found in ways_out:
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
            seen |= {one.way for one in said if f"by {one.way}" in text}
            leaks |= {(one.way, out) for one in said if one.secret in text}
            leaks |= {("known", out) for known in ENCODED if known in text}
    assert seen == {one.way for one in said}
    return {leak for leak in leaks - GIVEN if not leak[1].startswith("file: environments/")}  # see `save_environment`


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_no_form_of_a_secret_given_in_any_way_comes_out_in_any_way(
    lab: Lab, command: Command, tmp_path: Path
) -> None:
    assert sorted(await searched(lab, command, tmp_path, WAYS_IN)) == []


@pytest.mark.long
@pytest.mark.timeout(240)
@limited(confinement="off", integration_gates=(GATE,), tool_server_start_seconds=60.0)
async def test_no_form_of_a_secret_comes_out_of_what_programs_print_or_return(
    lab: Lab, command: Command, tmp_path: Path
) -> None:
    leaks = await searched(lab, command, tmp_path, WAYS_IN_OF_PROGRAMS)
    assert sorted(leaks) == []
