"""Worktrees in a real repository: made, looked at, brought up to date, given up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.conftest import Admit, Admitted, git
from tests.services.lab import approval, ask, commit, everything, kinds, make, one
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError
from workbench.settings import Settings
from workbench.shells.serve import Servers

pytestmark = pytest.mark.anyio

# Creating


async def test_a_worktree_is_a_directory_with_a_branch_of_its_own(workbench: Workbench, repository: Path) -> None:
    made = await workbench.call("create_worktree", name="lab")
    place = repository / ".aiswarm" / "worktrees" / "lab"
    assert (made["path"], made["branch_name"], made["integration_target"]) == (str(place), "wb/lab/main", "main")
    assert (made["status"], made["created_by"]) == ("active", "operator")
    assert git("branch", "--show-current", cwd=place) == "wb/lab/main"
    assert git("rev-parse", "HEAD", cwd=place) == git("rev-parse", "main", cwd=repository)
    assert (place / "README.md").read_text() == "# A project\n"
    assert git("status", "--porcelain", cwd=repository) == ""
    assert await kinds(workbench) == ["worktree.created"]


async def test_a_worktree_starts_where_it_is_told(workbench: Workbench, repository: Path) -> None:
    git("switch", "-q", "-c", "dev", cwd=repository)
    tip = commit(repository)
    git("switch", "-q", "main", cwd=repository)
    made = await workbench.call("create_worktree", name="lab", branch_name="feature/x", source_branch="dev")
    assert (made["branch_name"], made["integration_target"]) == ("feature/x", "dev")
    assert git("rev-parse", "feature/x", cwd=repository) == tip


async def test_the_branch_the_person_is_on_is_the_default(workbench: Workbench, repository: Path) -> None:
    git("switch", "-q", "-c", "dev", cwd=repository)
    made = await workbench.call("create_worktree", name="lab")
    assert made["integration_target"] == "dev"


HOSTILE = {
    "BAD_WORKTREE_NAME": [{"name": n} for n in ("../x", "a/b", "-x", "A", ".", "a b", "x\n", "é", "main")],
    "INVALID_ARGUMENTS": [{"name": n} for n in ("", "x" * 51, "x\0", 7, None)],
    "BAD_BRANCH_NAME": [
        {"name": "lab", "branch_name": n}
        for n in ("-x", "--help", "a..b", "HEAD", "x.lock", "a b", "@{-1}", "x/", "a" * 40)
    ],
    "BRANCH_EXISTS": [{"name": "lab", "branch_name": n} for n in ("main", "main/x")],
    "BRANCH_NOT_FOUND": [{"name": "lab", "source_branch": n} for n in ("gone", "--help", "main~1", "HEAD^", "-x")],
}


@pytest.mark.parametrize("code", HOSTILE)
async def test_a_name_that_git_or_a_path_could_misread_is_refused_and_leaves_nothing(
    workbench: Workbench, repository: Path, code: str
) -> None:
    before = everything(repository)
    for arguments in HOSTILE[code]:
        with pytest.raises(WorkbenchError, match=f"^{code}"):
            await workbench.call("create_worktree", **arguments)
    assert everything(repository) == before
    assert (await workbench.call("get_worktree_status"))["worktrees"] == []
    assert list((repository / ".aiswarm").glob("worktrees/*")) == []
    assert len(git("worktree", "list", cwd=repository).splitlines()) == 1


async def test_two_worktrees_cannot_have_the_same_name(workbench: Workbench, repository: Path) -> None:
    await make(workbench)
    with pytest.raises(Conflict, match="WORKTREE_EXISTS"):
        await make(workbench, branch_name="other")
    (repository / ".aiswarm" / "worktrees" / "old").mkdir()
    with pytest.raises(Conflict, match="WORKTREE_PATH_TAKEN"):
        await make(workbench, "old")
    assert (repository / ".aiswarm" / "worktrees" / "old").is_dir()


async def test_of_two_who_create_the_same_at_once_one_does(workbench: Workbench, repository: Path) -> None:
    calls = [make(workbench, "lab"), make(workbench, "lab"), make(workbench, "two"), make(workbench, "three")]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [a.code for a in answers if isinstance(a, WorkbenchError)] == ["WORKTREE_EXISTS"]
    assert sorted(p.name for p in (repository / ".aiswarm" / "worktrees").iterdir()) == ["lab", "three", "two"]
    assert len(git("worktree", "list", cwd=repository).splitlines()) == 4


async def test_a_project_may_be_a_part_of_a_repository(repository: Path, settings: Settings) -> None:
    part = repository / "part"
    commit(repository, "part.txt")
    part.mkdir()
    async with Workbench.open(settings.model_copy(update={"project": part}, deep=True)) as workbench:
        place = await make(workbench)
        assert (place / "README.md").exists()
        commit(place)
        await workbench.call("approve", approval_id=await ask(workbench))
        assert (repository / "new.txt").exists()


async def test_a_project_that_is_no_repository_has_no_worktrees_but_everything_else(tmp_path: Path) -> None:
    async with Workbench.open(Settings(project=tmp_path / "plain")) as workbench:
        for name, arguments in (("create_worktree", {"name": "lab"}), ("get_worktree_status", {})):
            with pytest.raises(BadInput, match="NOT_A_REPOSITORY"):
                await workbench.call(name, **arguments)
        await workbench.call("create_task", title="t", persona_id="tester")
        async with Servers(workbench) as servers:
            await servers.start(0)


async def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    async with Workbench.open(Settings(project=tmp_path)) as workbench:
        with pytest.raises(BadInput, match="NO_COMMITS"):
            await make(workbench)


# Who may


async def planner(workbench: Workbench, admit: Admit, name: str) -> Admitted:
    """A planner."""
    found: Admitted = await admit(name, "planner")
    return found


async def test_a_planner_manages_only_its_own_worktrees(workbench: Workbench, admit: Admit) -> None:
    paula, pete = [await planner(workbench, admit, name) for name in ("paula", "pete")]
    made = await workbench.dispatch(paula.caller, "create_worktree", {"name": "lab"})
    commit(Path(made["path"]))
    assert made["created_by"] == "paula"
    for name in ("integrate_worktree", "request_integration", "discard_worktree"):
        with pytest.raises(Refused, match=r"FORBIDDEN.*belongs to paula"):
            await workbench.dispatch(pete.caller, name, {"worktree_name": "lab"})
    asked = await workbench.dispatch(paula.caller, "request_integration", {"worktree_name": "lab"})
    assert (await approval(workbench, asked["approval_id"]))["requester"] == "paula"
    assert (await workbench.dispatch(paula.caller, "discard_worktree", {"worktree_name": "lab"}))["status"] == (
        "discarded"
    )


async def test_a_worker_may_look_but_not_touch(workbench: Workbench, admit: Admit) -> None:
    await make(workbench)
    ada = await admit("ada")
    assert (await workbench.dispatch(ada.caller, "get_worktree_status", {}))["worktrees"][0]["name"] == "lab"
    for name, arguments in {
        "create_worktree": {"name": "other"},
        "integrate_worktree": {"worktree_name": "lab"},
        "discard_worktree": {"worktree_name": "lab"},
    }.items():
        with pytest.raises(Refused, match="FORBIDDEN"):
            await workbench.dispatch(ada.caller, name, arguments)


# How it stands


async def test_the_status_tells_commits_files_conflicts_and_open_tasks(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    assert (await one(workbench))["files"] == []
    commit(place, "new.txt", "a\nb\n")
    tip = commit(place, "README.md", "# Theirs\n")
    (place / "blob").write_bytes(b"\0\1")
    (place / "uncommitted.txt").write_text("not yet")
    commit(repository, "README.md", "# Mine\n")
    for worktree in ("lab", "lab", "other"):
        await workbench.call("create_task", title="t", persona_id="tester", target_worktree=worktree)
    await workbench.call("cancel_task", task_id=1)
    found = await one(workbench)
    assert (found["commit"], found["ahead"], found["behind"]) == (tip, 2, 1)
    assert {f["path"]: (f["added"], f["removed"]) for f in found["files"]} == {"new.txt": (2, 0), "README.md": (1, 1)}
    assert (found["conflicts"], found["agents"], found["open_tasks"]) == (["README.md"], [], 1)


async def test_the_list_has_the_active_ones_oldest_first_and_by_name_any(workbench: Workbench) -> None:
    for name in ("b", "a", "c"):
        await make(workbench, name)
    await workbench.call("discard_worktree", worktree_name="a")
    names = [w["name"] for w in (await workbench.call("get_worktree_status"))["worktrees"]]
    assert names == ["b", "c"]
    assert (await one(workbench, "a"))["status"] == "discarded"
    with pytest.raises(NotFound, match="WORKTREE_NOT_FOUND"):
        await one(workbench, "z")


async def test_a_branch_that_somebody_deleted_comes_back_from_its_worktree(
    workbench: Workbench, repository: Path
) -> None:
    tip = commit(await make(workbench))
    assert (await one(workbench))["commit"] == tip
    git("update-ref", "-d", "refs/heads/wb/lab/main", cwd=repository)
    assert (await one(workbench))["commit"] == tip
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip


async def test_a_target_that_somebody_deleted_does_not_spoil_the_list(workbench: Workbench, repository: Path) -> None:
    git("branch", "dev", cwd=repository)
    tip = commit(await make(workbench, source_branch="dev"))
    git("branch", "-q", "-D", "dev", cwd=repository)
    found = await one(workbench)
    assert (found["commit"], found["ahead"], found["conflicts"]) == (tip, 0, [])
    with pytest.raises(NotFound, match="BRANCH_NOT_FOUND"):
        await ask(workbench)


# Giving up


async def test_discarding_keeps_the_branch_and_takes_the_question_back(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    tip = commit(place)
    question = await ask(workbench)
    discarded = await workbench.call("discard_worktree", worktree_name="lab", reason="Dead end.")
    assert (discarded["status"], discarded["integrated_commit"]) == ("discarded", None)
    assert not place.exists()
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    assert (await approval(workbench, question))["status"] == "rejected"
    assert not (repository / "new.txt").exists()
    event = (await workbench.call("list_events", kinds=["worktree.discarded"]))["events"][0]
    assert event["data"] == {"reason": "Dead end.", "branch_kept": True, "bundle": None}


async def test_a_name_can_be_used_again_with_another_branch(workbench: Workbench) -> None:
    commit(await make(workbench))
    await workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(Conflict, match="BRANCH_EXISTS"):
        await make(workbench)
    place = await make(workbench, branch_name="wb/lab/2")
    assert place.exists()
    found = await one(workbench)
    assert (found["status"], found["ahead"], found["branch_name"]) == ("active", 0, "wb/lab/2")
