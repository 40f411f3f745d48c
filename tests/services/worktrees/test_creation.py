"""Creating worktrees in real and odd repositories, under any name, and permission to manage them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.confinement.outside_hosts import GREETING, host, serve_files
from tests.conftest import Admit, git
from tests.process.stage import gone
from tests.services.worktrees.lab import approval, ask, commit, everything, worktree_row
from workbench.app import Workbench
from workbench.confinement import abilities
from workbench.errors import Refused, WorkbenchError
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_worktree_is_a_directory_with_a_branch_of_its_own(workbench: Workbench, repository: Path) -> None:
    made = await workbench.call("create_worktree", name="lab")
    place = repository / ".aiswarm" / "worktrees" / "lab"
    assert (made["path"], made["branch_name"], made["integration_target"]) == (str(place), "wb/lab/main", "main")
    assert (made["status"], made["created_by"]) == ("active", "operator")
    assert git("branch", "--show-current", cwd=place) == "wb/lab/main"
    assert git("rev-parse", "HEAD", cwd=place) == git("rev-parse", "main", cwd=repository)
    assert (place / "README.md").read_text() == "# A project\n"
    assert git("status", "--porcelain", cwd=repository) == ""
    assert await given.kinds(workbench, "worktree.*") == ["worktree.created"]


async def test_a_worktree_starts_at_the_given_branch_or_the_current_one(workbench: Workbench, repository: Path) -> None:
    git("switch", "-q", "-c", "dev", cwd=repository)
    tip = commit(repository)
    assert (await workbench.call("create_worktree", name="here"))["integration_target"] == "dev"
    git("switch", "-q", "main", cwd=repository)
    made = await workbench.call("create_worktree", name="lab", branch_name="feature/x", source_branch="dev")
    assert (made["branch_name"], made["integration_target"]) == ("feature/x", "dev")
    assert git("rev-parse", "feature/x", cwd=repository) == tip


LETTERS = "/\\\n\r\t \"'`$&|;<>()[]{}*?~^:@!#%=+,.\x07\x1b\x7f\u202e\u200b\ufeffé\U0001f4a9İßａ"
HOSTILE = {
    "BAD_WORKTREE_NAME": [
        {"name": n}
        for n in (
            *("../x", "../../etc", "/etc", "a/b", "..", ".", "-x", "-rf", "_", "A", "HEAD", "main", "x.lock", ".git"),
            *(made for letter in LETTERS for made in (f"{letter}a", f"a{letter}b", f"a{letter}")),
        )
    ],
    "INVALID_ARGUMENTS": [{"name": n} for n in ("", "x" * 51, "a" * 5_000, "x\0", "\ud800", 7, None)],
    "BAD_BRANCH_NAME": [
        {"name": "lab", "branch_name": n}
        for n in ("-x", "--help", "a..b", "HEAD", "x.lock", "a b", "@{-1}", "x/", "a" * 40)
    ],
    "BRANCH_EXISTS": [{"name": "lab", "branch_name": n} for n in ("main", "main/x")],
    "BRANCH_NOT_FOUND": [{"name": "lab", "source_branch": n} for n in ("gone", "--help", "main~1", "HEAD^", "-x")],
}


@pytest.mark.parametrize("code", HOSTILE)
async def test_a_hostile_name_is_refused_and_leaves_nothing(workbench: Workbench, repository: Path, code: str) -> None:
    before = everything(repository)
    for arguments in HOSTILE[code]:
        await given.refuses(code, workbench.call("create_worktree", **arguments))
    assert everything(repository) == before
    assert (await workbench.call("get_worktree_status"))["worktrees"] == []
    assert list((repository / ".aiswarm").glob("worktrees/*")) == []
    assert len(git("worktree", "list", cwd=repository).splitlines()) == 1


async def test_two_worktrees_cannot_have_the_same_name(workbench: Workbench, repository: Path) -> None:
    await given.worktree(workbench)
    await given.refuses("WORKTREE_EXISTS", given.worktree(workbench, branch_name="other"))
    (repository / ".aiswarm" / "worktrees" / "old").mkdir()
    await given.refuses("WORKTREE_PATH_TAKEN", given.worktree(workbench, "old"))
    assert (repository / ".aiswarm" / "worktrees" / "old").is_dir()


async def test_one_of_two_concurrent_creations_of_a_worktree_succeeds(workbench: Workbench, repository: Path) -> None:
    calls = [
        given.worktree(workbench, "lab"),
        given.worktree(workbench, "lab"),
        given.worktree(workbench, "two"),
        given.worktree(workbench, "three"),
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [a.code for a in answers if isinstance(a, WorkbenchError)] == ["WORKTREE_EXISTS"]
    assert sorted(p.name for p in (repository / ".aiswarm" / "worktrees").iterdir()) == ["lab", "three", "two"]
    assert len(git("worktree", "list", cwd=repository).splitlines()) == 4


async def test_a_project_may_be_a_part_of_a_repository(repository: Path, settings: Settings) -> None:
    part = repository / "part"
    commit(repository, "part.txt")
    part.mkdir()
    async with Workbench.open(settings.model_copy(update={"project": part}, deep=True)) as workbench:
        place = await given.worktree(workbench)
        assert (place / "README.md").exists()
        commit(place)
        await workbench.call("approve", approval_id=await ask(workbench))
        assert (repository / "new.txt").exists()


async def test_a_project_that_is_no_repository_has_no_worktrees_but_everything_else(
    tmp_path: Path, database: dict[str, Any]
) -> None:
    async with Workbench.open(Settings(project=tmp_path / "plain", **database)) as workbench:
        for name, arguments in (("create_worktree", {"name": "lab"}), ("get_worktree_status", {})):
            await given.refuses("NOT_A_REPOSITORY", workbench.call(name, **arguments))
        await given.task(workbench, "t", "tester")
        async with Servers(workbench) as servers:
            await servers.start(0)


@pytest.mark.long
async def test_a_detached_head_needs_the_branch_to_start_from(workbench: Workbench, repository: Path) -> None:
    git("checkout", "-q", "--detach", cwd=repository)
    git("branch", "-q", "-m", "main", "trunk", cwd=repository)
    await given.refuses("BRANCH_NOT_FOUND", given.worktree(workbench))
    place = await given.worktree(workbench, source_branch="trunk")
    commit(place)
    await workbench.call("approve", approval_id=await ask(workbench))
    assert git("show", "trunk:new.txt", cwd=repository) == "new"


"""How many of the names that git takes for a branch get a worktree."""


@pytest.mark.long
async def test_a_usual_branch_that_exists_is_offered_and_continued(workbench: Workbench, repository: Path) -> None:
    tip = commit(await given.worktree(workbench, source_branch="main"))
    await workbench.call("discard_worktree", worktree_name="lab")
    error = await given.refuses("BRANCH_EXISTS", given.worktree(workbench))
    assert "with 1 commit that main does not have" in error.message
    assert "`workbench worktrees create lab --branch wb/lab/main`" in error.message
    (in_the_way := repository / ".aiswarm" / "worktrees" / "lab").mkdir()
    await given.refuses("WORKTREE_PATH_TAKEN", given.worktree(workbench, branch_name="wb/lab/main"))
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    in_the_way.rmdir()
    git("switch", "-q", "-c", "dev", cwd=repository)
    place = await given.worktree(workbench, branch_name="wb/lab/main")
    assert (git("rev-parse", "HEAD", cwd=place), (place / "new.txt").read_text()) == (tip, "new\n")
    worktree = await worktree_row(workbench)
    assert (worktree["integration_target"], worktree["ahead"], worktree["status"]) == ("main", 1, "active")
    again = commit(place, "more.txt")
    await workbench.call("approve", approval_id=await ask(workbench))
    assert git("log", "--format=%s", "main", cwd=repository).splitlines()[:2] == ["Integrate lab", "Change more.txt"]
    assert git("rev-parse", "wb/lab/main", cwd=repository) == again


async def test_a_branch_in_use_is_not_continued(workbench: Workbench, repository: Path) -> None:
    await given.worktree(workbench)
    for branch in ("dev", "here"):
        git("branch", branch, cwd=repository)
    await given.worktree(workbench, "other", source_branch="dev")
    git("switch", "-q", "here", cwd=repository)
    for branch, code in (("wb/lab/main", "BRANCH_EXISTS"), ("dev", "BRANCH_EXISTS"), ("here", "TARGET_CHECKED_OUT")):
        await given.refuses(code, given.worktree(workbench, "next", branch_name=branch, source_branch="main"))
        assert git("rev-parse", branch, cwd=repository) == git("rev-parse", "main", cwd=repository)
    assert not (repository / ".aiswarm" / "worktrees" / "next").exists()


async def test_a_planner_continues_branches_of_worktrees(workbench: Workbench, repository: Path, admit: Any) -> None:
    git("branch", "mine", cwd=repository)
    await given.worktree(workbench)
    await workbench.call("discard_worktree", worktree_name="lab")
    planner = (await admit("Pia", role="planner")).caller
    await given.refuses(
        "FORBIDDEN", workbench.dispatch(planner, "create_worktree", {"name": "lab", "branch_name": "mine"})
    )
    made = await workbench.dispatch(planner, "create_worktree", {"name": "lab", "branch_name": "wb/lab/main"})
    assert made["branch_name"] == "wb/lab/main"


async def test_a_planner_manages_only_its_own_worktrees(workbench: Workbench, admit: Admit) -> None:
    paula, pete = [await admit(name, "planner") for name in ("paula", "pete")]
    made = await workbench.dispatch(paula.caller, "create_worktree", {"name": "lab"})
    commit(Path(made["path"]))
    assert made["created_by"] == "paula"
    for name in ("integrate_worktree", "request_integration", "discard_worktree"):
        with pytest.raises(Refused, match=r"FORBIDDEN.*belongs to paula"):
            await workbench.dispatch(pete.caller, name, {"worktree_name": "lab"})
    request = await workbench.dispatch(paula.caller, "request_integration", {"worktree_name": "lab"})
    assert (await approval(workbench, request["approval_id"]))["requester"] == "paula"
    assert (await workbench.dispatch(paula.caller, "discard_worktree", {"worktree_name": "lab"}))["status"] == (
        "discarded"
    )


@pytest.mark.long
async def test_a_command_runs_in_a_worktree_and_only_there(
    workbench: Workbench, repository: Path, program: Any
) -> None:
    await given.worktree(workbench)
    assert (await program("worktrees", "run", "lab", "--", "sh", "-c", "exit 7")).status == 7
    assert (await program("worktrees", "run", "lab", "git", "log", "-1", "--format=%s")).out == "Start\n"
    ran = await program("worktrees", "run", "lab", "--", "sh", "-c", f"echo x > {repository}/x")
    able = abilities()
    assert (ran.status != 0, (repository / "x").exists()) == (able.abi > 0 and not able.namespaces, able.abi == 0)
    assert (repository / ".aiswarm" / "worktrees" / "lab" / "x").exists() is bool(able.namespaces)


@pytest.mark.long
async def test_a_command_in_a_worktree_reaches_the_hosts_of_the_settings(
    workbench: Workbench, program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await given.worktree(workbench)
    with host(serve_files(tmp_path / "outside")) as server:
        monkeypatch.setenv("WORKBENCH_NETWORK", f"localhost:{server.port}")
        monkeypatch.setenv("WORKBENCH_PRIVATE", "127.0.0.0/8\n::1")
        command = ["worktrees", "run", "lab", "--", "curl", "-sSf", f"http://localhost:{server.port}/hi"]
        fetched = await program(*command)
        assert fetched.out == GREETING, fetched.err
        ran = await program(*command[:-1], "http://evil.test/hi")
    assert ran.status != 0
    assert "evil.test cannot be reached, because it is not among the hosts of the box" in ran.err


@pytest.mark.long
async def test_processes_of_a_command_in_a_worktree_end_with_it(workbench: Workbench, program: Any) -> None:
    lab = await given.worktree(workbench)
    daemon = "setsid -f env -i sh -c 'echo $$ > pid; exec sleep 600'; until [ -s pid ]; do sleep 0.01; done"
    assert (await program("worktrees", "run", "lab", "--", "sh", "-c", daemon)).status == 0
    assert gone(int((lab / "pid").read_text()))
