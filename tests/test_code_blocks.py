"""Every code block of the README and the documentation runs as printed, in a project where that makes sense."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import shutil
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generator import ROOT
from tests import given
from tests.code_blocks import blocks_of, code_blocks, environment, run_commands
from tests.conftest import Admit, Clock, Command, Served, git
from tests.kernel.conftest import Kernel, started
from tests.services.worktrees.lab import commit
from tests.worker.working import working
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.model import SECOND
from workbench.ops import OPERATOR
from workbench.services.tasks import board
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long]

ELSEWHERE = {
    ROOT / "docs" / "chat.md": ROOT / "tests" / "cli" / "chat" / "test_manual.py",
    ROOT / "docs" / "tools.md": ROOT / "tests" / "cli" / "tools" / "test_manual.py",
    ROOT / "docs" / "runs.md": ROOT / "tests" / "recording" / "test_manual.py",
    ROOT / "docs" / "sweeps.md": ROOT / "tests" / "sweeps" / "test_manual.py",
    ROOT / "docs" / "machines.md": ROOT / "tests" / "machines" / "test_machines.py",
    ROOT / "docs" / "mcp.md": ROOT / "tests" / "shells" / "mcp" / "test_manual.py",
    ROOT / "docs" / "personalities.md": ROOT / "tests" / "cli" / "koi" / "test_manual.py",
    ROOT / "docs" / "definitions.md": ROOT / "tests" / "services" / "definitions" / "test_manual.py",
    ROOT / "docs" / "postgresql.md": ROOT / "tests" / "trust" / "test_postgresql_manual.py",
    ROOT / "docs" / "your_repository.md": ROOT / "tests" / "cli" / "test_your_repository.py",
}
"""Pages whose blocks another test runs, and that test."""
BLOCKS = [
    block
    for block in code_blocks()
    if block.reason is None
    and block.path not in ELSEWHERE
    and block.language not in ("sql", "yaml")  # run by analytics/test_questions.py and worker/test_acp_agents.py
]
CELLS = {
    page: [block for block in BLOCKS if block.is_cell and block.path == ROOT / page]
    for page in ("README.md", "docs/agents.md", "docs/notebook.md")
}
"""The cells of each page, which run in order in a kernel of their own."""
COMMANDS = {block.heading: block for block in BLOCKS if block.language in ("console", "sh")}
SETTINGS = {block.heading: block for block in BLOCKS if block.language == "toml"}
PROGRAMS = {block.heading: block for block in BLOCKS if block.language == "python" and not block.is_cell}
FIRST_STEPS, EACH_KIND = "Five minutes on your own repository", "Each kind of agent in a few lines"
OWN_SETTINGS = {"Your own environment, data and keys", "Hosts", "The workplace", "Being told", "Scarce things"}
"""Headings of settings for the user's own file."""
APRIL_2026 = 1_775_044_800
"""Noon of the first day, in UTC."""


def test_each_block_is_run_by_a_test_below() -> None:
    known = (
        {
            *("Install", FIRST_STEPS, EACH_KIND, "Commands", "Penguins of the Palmer Archipelago"),
            *("The work of an attempt", "Ending a worktree, and going on"),
        },
        {*OWN_SETTINGS, "Gates"},
        {EACH_KIND, "Your own program", "An operation"},
    )
    assert (COMMANDS.keys(), SETTINGS.keys(), PROGRAMS.keys()) == known, "a new block needs a test, or is a cell"
    others = [block for kind in (COMMANDS, SETTINGS, PROGRAMS) for block in kind.values()]
    assert {*others, *(block for cells in CELLS.values() for block in cells)} == {*BLOCKS}


def test_the_blocks_of_other_pages_are_run_elsewhere() -> None:
    assert [page for page, test in ELSEWHERE.items() if page.name not in test.read_text("utf-8")] == []


def test_the_blocks_that_no_test_runs_are_few_and_say_why() -> None:
    first = [block.commands[0].split()[:2] for block in code_blocks() if block.reason]
    assert first == [["ssh", "-N"], ["workbench", "koi"]]


def test_blocks_are_found_with_their_heading_and_reason() -> None:
    text = (
        "# Top\n```sh\nls\n```\n## Low\n```\n# art\n```\n<!-- not run by a test: slow -->\n```console\n$ a # b\n```\n"
    )
    first, second = blocks_of(Path("x.md"), text)
    assert (first.heading, first.line, first.language, first.code, first.reason) == ("Top", 2, "sh", "ls\n", None)
    assert (second.heading, second.reason, second.commands) == ("Low", "slow", ["a # b"])


# Commands


@pytest.mark.timeout(120)
async def test_kept_work_is_shown_and_adopted(
    served: Served, settle: Admit, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    ada = await settle("ada", "lab")
    for number in range(1, 7):
        await given.task(served.workbench, run=None, title=f"Task {number}", persona_id="tester")
    assert await given.task(served.workbench, run="echo $WORKBENCH_ATTEMPT > made.txt; exit 75", max_retries=1) == 7
    async with working(served, ada.token):
        await given.reached(served.workbench, 7, "failed")
    await asyncio.to_thread(run_commands, COMMANDS["The work of an attempt"].commands, repository)
    [approval] = (await served.workbench.call("list_approvals", kind="integration"))["approvals"]
    assert [file["path"] for file in approval["payload"]["files"]] == ["made.txt"]


async def test_discarded_work_is_restored(settings: Settings, clock: Clock, repository: Path) -> None:
    clock.now = APRIL_2026 * SECOND
    async with Workbench.open(settings, clock=clock) as workbench:
        place = await given.worktree(workbench)
        commit(place)
        (place / "draft.txt").write_text("a draft\n")
        await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True, force=True)
    await asyncio.to_thread(run_commands, COMMANDS["Ending a worktree, and going on"].commands, repository)
    assert git("show", "refs/back/workbench/saved/lab/uncommitted:draft.txt", cwd=repository) == "a draft"


async def test_a_repository_becomes_a_project(repository: Path) -> None:
    await asyncio.to_thread(run_commands, COMMANDS["Install"].commands, repository)
    assert {"workbench.ipynb", "plan.yaml"} <= {path.name for path in repository.iterdir()}


async def test_an_agent_that_registered_by_itself_is_admitted(served: Served, repository: Path) -> None:
    await given.worktree(served.workbench)
    registered = await served.workbench.call("register", name="ada", persona_id="implementer")
    printed = await asyncio.to_thread(run_commands, COMMANDS[EACH_KIND].commands, repository)
    assert "claude mcp add" in printed[0]
    assert (await served.workbench.identify(registered["token"])).worktree == "lab"


async def test_a_failed_task_is_listed_as_data(served: Served, repository: Path) -> None:
    _, listed, help_ = await asyncio.to_thread(run_commands, COMMANDS["Commands"].commands, repository)
    assert json.loads(listed) == []
    assert help_.startswith("Usage: workbench runs")


@pytest.mark.timeout(120)
async def test_the_sample_repository_is_analysed(tmp_path: Path) -> None:
    project = Path(shutil.copytree(ROOT / "data" / "penguins", tmp_path / "penguins"))
    await asyncio.to_thread(run_commands, COMMANDS["Penguins of the Palmer Archipelago"].commands, project)
    assert (project / "results" / "REPORT.md").exists()


# Settings


async def test_settings_count_when_they_are_trusted(workbench: Workbench, settings: Settings, command: Command) -> None:
    (settings.home / "settings.toml").write_text(SETTINGS["Gates"].code)
    assert (await command("trust", "--yes")).status == 0
    found = Settings(project=settings.project)
    assert (found.integration_gates, found.gate_seconds) == (("pytest -q", "ruff check ."), 600)


async def test_the_users_settings_count(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path))
    for heading in OWN_SETTINGS:
        (tmp_path / "settings.toml").write_text(SETTINGS[heading].code)
        found = Settings(project=settings.project)
        wanted = tomllib.loads(SETTINGS[heading].code)
        given_here = Settings(project=settings.project, **wanted)
        assert found.model_dump(include=set(wanted)) == given_here.model_dump(include=set(wanted))
        assert wanted.keys() <= found.model_fields_set


# Programs


@pytest.fixture
async def at_the_default_port(workbench: Workbench) -> AsyncIterator[Workbench]:
    """A project that is served at port 8765, as soon as no other test uses that."""
    async with Servers(workbench) as servers:
        while workbench.server is None:
            try:
                await servers.start(8765)
            except WorkbenchError as error:
                assert error.code == "PORT_TAKEN", error
                await asyncio.sleep(0.2)
        yield workbench


def run(program: str) -> Any:
    """Run a program that may use `await` at its top level: what is to be awaited."""
    code = compile(program, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return eval(code, {})


@pytest.mark.timeout(120)
async def test_the_client_example_answers_others_and_not_itself(at_the_default_port: Workbench) -> None:
    call = at_the_default_port.call
    await call("create_project", name="Apollo")
    session = (await call("create_session", project_id="Apollo", name="Day one"))["id"]
    feed = at_the_default_port.feed

    async def ask() -> list[str]:
        async with feed.subscribe("approval.requested", after=0) as asked:
            await anext(asked)
        [oracle] = (await call("list_approvals"))["approvals"]  # no agent of another test has come to this port
        approval = oracle["id"]
        await call("approve", approval_id=approval, choices={"session_id": session, "access_level": "session_level"})
        while "context.written" not in feed.patterns:
            await asyncio.sleep(0.001)
        questions = []
        async with feed.subscribe("context.written") as written:
            for title in ("Who?", "Why?"):
                context = await call("write", session_id=session, content={"title": title, "content": ""})
                questions.append(context["context_id"])
                while (await anext(written)).actor != "Oracle":
                    pass
        return questions

    agent, asking = asyncio.create_task(run(PROGRAMS["Your own program"].code)), asyncio.create_task(ask())
    await asyncio.wait({agent, asking}, return_when=asyncio.FIRST_COMPLETED)
    if not asking.done():
        await agent  # raises why it ended
    questions = await asking
    agent.cancel()
    await asyncio.gather(agent, return_exceptions=True)
    contexts = (await call("read", limit=500))["data"]
    assert [row["metadata"]["to"] for row in reversed(contexts) if row["title"] == "Answer"] == questions


async def test_the_shortest_agent_does_a_task(at_the_default_port: Workbench) -> None:
    call = at_the_default_port.call
    task = (await call("create_task", title="Ask", persona_id="implementer"))["id"]

    async def admit() -> None:
        async with at_the_default_port.feed.subscribe("approval.requested", after=0) as asked:
            await anext(asked)
        [oracle] = (await call("list_approvals"))["approvals"]
        await call("approve", approval_id=oracle["id"], choices={"persona_id": "implementer"})

    await asyncio.gather(run(PROGRAMS[EACH_KIND].code), admit())
    assert (await given.task_now(at_the_default_port, task))["result_data"] == {"answer": 42}


async def test_the_operation_on_the_page_is_copied_from_the_source_and_works(workbench: Workbench) -> None:
    code = PROGRAMS["An operation"].code
    assert code in Path(board.__file__).read_text("utf-8")
    names = dict(vars(board))
    exec(compile(code, "README.md", "exec", dont_inherit=True), names)
    await given.task(workbench, "Count", "tester")
    counted = await names["count_tasks"](workbench._ctx.of(OPERATOR))
    assert counted.counts == {"pending": 1}


# Cells


@pytest.fixture
def kernel(repository: Path, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel in a repository with something to mend, on a machine that has Claude Code."""
    (repository / "unused.py").write_text("import os\n")
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "A file for the linter to mend", cwd=repository)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\nexec sleep 600\n")  # an agent that gets no task does not start it
    (programs / "claude").chmod(0o755)
    path = os.pathsep.join([str(programs), environment()["PATH"]])
    with started(tmp_path, cwd=repository, env=environment(PATH=path)) as made:
        try:
            yield made
        finally:
            made.run("%workbench stop --end-workers")


@pytest.mark.timeout(300)
def test_the_first_five_minutes_end_with_a_merge(kernel: Kernel, repository: Path) -> None:
    steps = [block for block in BLOCKS if block.heading == FIRST_STEPS]
    for block in steps:
        if block.is_cell:
            printed = kernel.run(block.code)
        else:
            run_commands(block.commands, repository)
    assert "1 attempt at 1 task by 1 agent" in printed  # the report
    assert "Workbench is stopped." in printed
    assert "unused.py" in (repository / "LINES.txt").read_text()


@pytest.mark.timeout(300)
def test_the_cells_of_the_readme_start_agents_and_ask_a_model(kernel: Kernel) -> None:
    kernel.run("%workbench start --port 0")
    for block in CELLS["README.md"]:
        if block.heading == EACH_KIND:
            kernel.run(block.code)
    profiles = "print(sorted(agent['process']['profile'] for agent in wb.call('get_managed_agents')['agents']))"
    assert kernel.run(profiles) == "['claude', 'script']\n"


@pytest.mark.timeout(300)
def test_the_cells_about_agents_run_in_order(kernel: Kernel) -> None:
    kernel.run("%workbench start --port 0")
    for block in CELLS["docs/agents.md"]:
        kernel.run(block.code)
    assert kernel.run("print(wb.personalities['ada'].name)") == "ada\n"


@pytest.mark.timeout(300)
def test_the_cells_about_notebooks_run_in_order(kernel: Kernel) -> None:
    for block in CELLS["docs/notebook.md"]:
        if "integrate_worktree" in block.code:  # "When the work is done:"
            kernel.run("await wb.tasks['lint']")
        kernel.run(block.code)
    kernel.run('asked = wb.call("list_approvals", kind="integration")["approvals"]')
    assert kernel.run('print([file["path"] for file in asked[0]["payload"]["files"]])') == "['unused.py']\n"
