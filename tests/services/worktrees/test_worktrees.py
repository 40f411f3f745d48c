"""Worktrees in a real repository: made, looked at, brought up to date, given up."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, Admitted, git
from tests.services.worktrees.lab import approval, ask, commit, everything, kinds, make, one
from workbench.app import Workbench
from workbench.confinement import abilities
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


# As text


async def test_the_difference_is_shown_file_by_file(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    (place / "blob").write_bytes(b"\0\1")
    commit(place, "sub.txt", "a\nb\n")
    tip = commit(place, "README.md", "# Theirs\n")
    found = await workbench.call("get_worktree_diff", worktree_name="lab")
    assert (found["worktree"], found["target"], found["commit"]) == ("lab", "main", tip)
    files = {file["path"]: file for file in found["files"]}
    assert {name: file["status"] for name, file in files.items()} == {"README.md": "M", "blob": "A", "sub.txt": "A"}
    assert "-# A project\n+# Theirs\n" in files["README.md"]["patch"]
    assert (files["sub.txt"]["added"], files["blob"]["binary"], files["blob"]["patch"]) == (2, True, None)
    only = await workbench.call("get_worktree_diff", worktree_name="lab", path="README.md")
    assert [file["path"] for file in only["files"]] == ["README.md"]


async def test_what_is_not_committed_is_shown_on_request(workbench: Workbench) -> None:
    place = await make(workbench)
    assert (await one(workbench))["dirty"] == []
    (place / "README.md").write_text("# Changed\n")
    (place / "new").mkdir()
    (place / "new" / "one.txt").write_text("new\n")
    found = (await workbench.call("get_worktree_diff", worktree_name="lab", uncommitted=True))["files"]
    assert [(file["path"], file["status"]) for file in found] == [("README.md", "M"), ("new/one.txt", "A")]
    below = await workbench.call("get_worktree_diff", worktree_name="lab", uncommitted=True, path="new")
    assert [file["path"] for file in below["files"]] == ["new/one.txt"]
    assert (await one(workbench))["dirty"] == ["README.md", "new/"]
    commit(place, "more.txt")
    assert (await one(workbench))["dirty"] == []


async def test_a_long_difference_is_cut(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"max_diff_bytes": 2_000})) as workbench:
        place = await make(workbench)
        commit(place, "a.txt", "short\n")
        commit(place, "b.txt", "long\n" * 10_000)
        first, second = (await workbench.call("get_worktree_diff", worktree_name="lab"))["files"]
        assert ("+short" in first["patch"], first["truncated"]) == (True, False)
        assert (second["patch"], second["truncated"], second["added"]) == (None, True, 10_000)


async def test_what_was_merged_can_still_be_looked_at(workbench: Workbench) -> None:
    commit(await make(workbench))
    await workbench.call("approve", approval_id=await ask(workbench))
    found = await workbench.call("get_worktree_diff", worktree_name="lab")
    assert [file["path"] for file in found["files"]] == ["new.txt"]
    assert (await workbench.call("get_worktree_diff", worktree_name="lab", uncommitted=True))["files"] == []


# Bringing the target in


async def test_an_update_brings_the_target_in(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    commit(place)
    mine = commit(repository, "mine.txt")
    updated = await workbench.call("update_worktree", worktree_name="lab")
    assert (updated["merged"], updated["conflicts"]) == (True, [])
    assert git("rev-parse", "HEAD", cwd=place) == updated["commit"]
    assert git("rev-parse", "wb/lab/main", cwd=repository) == updated["commit"]
    assert (place / "mine.txt").exists()
    git("merge-base", "--is-ancestor", mine, "wb/lab/main", cwd=repository)
    again = await workbench.call("update_worktree", worktree_name="lab")
    assert (again["merged"], again["commit"]) == (False, updated["commit"])
    assert "worktree.updated" in await kinds(workbench)


async def test_an_update_with_conflicts_lists_them_and_changes_nothing(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    tip = commit(place, "README.md", "# Theirs\n")
    commit(repository, "README.md", "# Mine\n")
    updated = await workbench.call("update_worktree", worktree_name="lab")
    assert updated == {"worktree": "lab", "commit": tip, "merged": False, "conflicts": ["README.md"]}
    assert git("status", "--porcelain", cwd=place) == ""
    assert (place / "README.md").read_text() == "# Theirs\n"


async def test_an_update_does_not_touch_uncommitted_work(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    (place / "README.md").write_text("work of hours")
    commit(repository, "README.md", "# Mine\n")
    with pytest.raises(Conflict, match="WORKTREE_DIRTY") as refused:
        await workbench.call("update_worktree", worktree_name="lab")
    assert refused.value.details["files"] == ["README.md"]
    assert (place / "README.md").read_text() == "work of hours"


async def test_an_update_waits_until_no_task_runs_there(workbench: Workbench, settle: Any, repository: Path) -> None:
    ada = await settle("ada", "lab")
    task = await workbench.call("create_task", title="t", persona_id="implementer", target_worktree="lab")
    await workbench.dispatch(ada.caller, "claim_task", {})
    commit(repository, "mine.txt")
    with pytest.raises(Conflict, match="WORKTREE_BUSY") as refused:
        await workbench.call("update_worktree", worktree_name="lab")
    assert refused.value.details["tasks"] == [task["id"]]
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": task["id"]})
    assert (await workbench.call("update_worktree", worktree_name="lab"))["merged"]


async def test_a_worktree_on_another_branch_is_not_updated(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    git("switch", "-q", "-c", "elsewhere", cwd=place)
    commit(repository, "mine.txt")
    with pytest.raises(Conflict, match="WORKTREE_ELSEWHERE"):
        await workbench.call("update_worktree", worktree_name="lab")


# Giving up without loss


async def test_uncommitted_files_are_not_given_up_without_force(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    (place / "draft.txt").write_text("a draft\n")
    with pytest.raises(Conflict, match="WORKTREE_DIRTY") as refused:
        await workbench.call("discard_worktree", worktree_name="lab")
    assert refused.value.details["files"] == ["draft.txt"]
    assert (place / "draft.txt").read_text() == "a draft\n"
    discarded = await workbench.call("discard_worktree", worktree_name="lab", force=True)
    bundle = Path(discarded["bundle"])
    assert bundle.parent == repository / ".aiswarm" / "trash"
    assert not place.exists()
    assert git("for-each-ref", "refs/workbench", cwd=repository) == ""
    git("fetch", "-q", str(bundle), "refs/workbench/saved/lab/uncommitted:refs/heads/back", cwd=repository)
    assert git("show", "back:draft.txt", cwd=repository) == "a draft"


async def test_commits_that_are_nowhere_else_are_not_given_up_without_force(
    workbench: Workbench, repository: Path, tmp_path: Path
) -> None:
    tip = commit(await make(workbench))
    with pytest.raises(Conflict, match="COMMITS_ONLY_HERE") as refused:
        await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True)
    assert refused.value.details["commits"] == 1
    assert (await one(workbench))["status"] == "active"
    discarded = await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True, force=True)
    assert (discarded["status"], discarded["branch_kept"]) == ("discarded", False)
    assert git("branch", "--list", "wb/*", cwd=repository) == ""
    git("clone", "-q", "--no-local", str(repository), str(tmp_path / "clone"), cwd=tmp_path)
    git("fetch", "-q", discarded["bundle"], "refs/heads/*:refs/heads/*", cwd=tmp_path / "clone")
    assert git("rev-parse", "wb/lab/main", cwd=tmp_path / "clone") == tip


async def test_commits_and_what_was_not_committed_after_them_are_saved_together(
    workbench: Workbench, repository: Path
) -> None:
    place = await make(workbench)
    tip = commit(place)
    (place / "draft.txt").write_text("a draft\n")
    discarded = await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True, force=True)
    git("reflog", "expire", "--expire=now", "--all", cwd=repository)
    git("gc", "-q", "--prune=now", cwd=repository)
    git("fetch", "-q", discarded["bundle"], "refs/*:refs/back/*", cwd=repository)
    assert git("rev-parse", "refs/back/heads/wb/lab/main", cwd=repository) == tip
    assert git("show", "refs/back/workbench/saved/lab/uncommitted:draft.txt", cwd=repository) == "a draft"


async def test_other_branches_and_a_stash_of_a_worktree_are_not_lost_either(
    workbench: Workbench, repository: Path
) -> None:
    place = await make(workbench)
    git("switch", "-q", "-c", "idea", cwd=place)
    idea = commit(place, "idea.txt")
    git("switch", "-q", "wb/lab/main", cwd=place)
    (place / "README.md").write_text("# Stashed\n")
    git("stash", "-q", cwd=place)
    with pytest.raises(Conflict, match="COMMITS_ONLY_HERE") as refused:
        await workbench.call("discard_worktree", worktree_name="lab")
    assert refused.value.details["refs"] == ["refs/heads/idea", "refs/stash"]
    discarded = await workbench.call("discard_worktree", worktree_name="lab", force=True)
    git("fetch", "-q", discarded["bundle"], "refs/*:refs/back/*", cwd=repository)
    assert git("rev-parse", "refs/back/workbench/saved/lab/heads/idea", cwd=repository) == idea
    assert git("show", "refs/back/workbench/saved/lab/stash:README.md", cwd=repository) == "# Stashed"
    assert git("for-each-ref", "refs/workbench", "refs/heads/idea", "refs/stash", cwd=repository) == ""


async def test_a_branch_that_others_contain_goes_without_a_bundle(workbench: Workbench, repository: Path) -> None:
    tip = commit(await make(workbench))
    assert (await one(workbench))["commit"] == tip
    git("branch", "kept", "wb/lab/main", cwd=repository)
    discarded = await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True)
    assert (discarded["bundle"], discarded["branch_kept"]) == (None, False)
    assert git("branch", "--list", "wb/*", cwd=repository) == ""
    assert git("rev-parse", "kept", cwd=repository) == tip


async def test_a_worktree_in_which_git_does_not_work_is_kept_as_it_is(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    (place / "draft.txt").write_text("a draft\n")
    (repository / ".aiswarm" / "repositories" / "lab" / "HEAD").write_text("nonsense")
    with pytest.raises(WorkbenchError):
        await workbench.call("discard_worktree", worktree_name="lab")
    assert (await one(workbench))["problem"]
    discarded = await workbench.call("discard_worktree", worktree_name="lab", force=True)
    assert (Path(discarded["bundle"]) / "files" / "draft.txt").read_text() == "a draft\n"
    assert not place.exists()


async def test_a_worktree_whose_files_are_gone_can_be_given_up(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    tip = commit(place)
    await one(workbench)
    shutil.rmtree(place)
    found = await one(workbench)
    assert (found["commit"], found["status"]) == (tip, "active")
    assert found["problem"].startswith("WORKTREE_GONE")
    with pytest.raises(WorkbenchError, match="WORKTREE_GONE"):
        await workbench.call("update_worktree", worktree_name="lab")
    assert (await workbench.call("discard_worktree", worktree_name="lab"))["status"] == "discarded"
    assert git("worktree", "list", cwd=repository).count("\n") == 0


async def test_what_was_left_uncommitted_when_a_worktree_was_merged_is_saved(
    workbench: Workbench, repository: Path
) -> None:
    place = await make(workbench)
    commit(place)
    question = await ask(workbench)
    (place / "late.txt").write_text("late\n")
    await workbench.call("approve", approval_id=question)
    assert not place.exists()
    (saved,) = (await workbench.call("list_events", kinds=["worktree.saved"]))["events"]
    ref = "refs/workbench/saved/lab/uncommitted"
    git("fetch", "-q", saved["data"]["bundle"], f"{ref}:refs/heads/back", cwd=repository)
    assert git("show", "back:late.txt", cwd=repository) == "late"


# Odd repositories


async def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    git("init", "-q", "--bare", cwd=tmp_path)
    async with Workbench.open(Settings(project=tmp_path)) as workbench:
        with pytest.raises(BadInput, match="BARE_REPOSITORY"):
            await make(workbench)


async def test_a_detached_head_needs_the_branch_to_start_from(workbench: Workbench, repository: Path) -> None:
    git("checkout", "-q", "--detach", cwd=repository)
    git("branch", "-q", "-m", "main", "trunk", cwd=repository)
    with pytest.raises(NotFound, match="BRANCH_NOT_FOUND"):
        await make(workbench)
    place = await make(workbench, source_branch="trunk")
    commit(place)
    await workbench.call("approve", approval_id=await ask(workbench))
    assert git("show", "trunk:new.txt", cwd=repository) == "new"


async def test_a_shallow_repository_with_submodules_works(tmp_path: Path, repository: Path) -> None:
    commit(repository, "second.txt")
    inner = tmp_path / "inner"
    shutil.copytree(repository, inner)
    allow = ("-c", "protocol.file.allow=always")
    git(*allow, "submodule", "--quiet", "add", f"file://{inner}", "inner", cwd=repository)
    git("commit", "-q", "-m", "A submodule", cwd=repository)
    shallow = tmp_path / "shallow"
    git(*allow, "clone", "-q", "--depth=1", f"file://{repository}", str(shallow), cwd=tmp_path)
    async with Workbench.open(Settings(project=shallow)) as workbench:
        place = await make(workbench)
        commit(place)
        assert (await one(workbench))["ahead"] == 1
        await workbench.call("approve", approval_id=await ask(workbench))
        assert (shallow / "new.txt").exists()
        assert git("fsck", "--connectivity-only", cwd=shallow) == ""


async def test_names_that_differ_in_case_alone_can_change_places(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    git("mv", "README.md", "Readme.md", cwd=place)
    git("commit", "-q", "-m", "Rename", cwd=place)
    files = (await workbench.call("get_worktree_diff", worktree_name="lab"))["files"]
    assert [(file["status"], file["old_path"], file["path"]) for file in files] == [("R", "README.md", "Readme.md")]
    await workbench.call("approve", approval_id=await ask(workbench))
    assert sorted(path.name for path in repository.glob("*.md")) == ["Readme.md"]


# By hand, on the command line


async def test_a_command_runs_in_a_worktree_and_touches_nothing_else(
    workbench: Workbench, repository: Path, command: Any
) -> None:
    await make(workbench)
    assert (await command("worktrees", "run", "lab", "--", "sh", "-c", "exit 7")).status == 7
    assert (await command("worktrees", "run", "lab", "git", "log", "-1", "--format=%s")).out == "Start\n"
    ran = await command("worktrees", "run", "lab", "--", "sh", "-c", f"echo x > {repository}/x")
    assert (ran.status != 0, (repository / "x").exists()) == (abilities().abi > 0, abilities().abi == 0)


# Hostile names


def hostile_names() -> list[str]:
    """200 names that a path, git, a shell, a database or a person could misread."""
    letters = "/\\\0\n\r\t \"'`$&|;<>()[]{}*?~^:@!#%=+,.\x07\x1b\x7f\u202e\u200b\ufeffé\U0001f4a9\ud800İß"
    inside = [f"a{letter}b" for letter in letters]
    edges = [made for letter in letters for made in (f"{letter}a", f"a{letter}", letter * 2)]
    words = ["..", ".", "-", "--", "-rf", "--help", "HEAD", "head", "main", "master", "con", "nul", "aux", "prn", "A"]
    words += ["../x", "../../etc", "/etc", "a/../b", "a/b", "./a", "~", "~root", "_", "_a", "objects", "refs", "trash"]
    words += [
        "a" * 51,
        "a" * 5_000,
        "..git",
        ".git",
        "x.lock",
        "a\n",
        "\na",
        "",
        " ",
        "   ",
        "ａ",
        "1" * 51,
        "a\x00/etc",
    ]
    words += [
        "${HOME}",
        "$(id)",
        "`id`",
        "%00",
        "%2e%2e",
        "a%2fb",
        "'; DROP TABLE worktrees; --",
        "\\..\\x",
        "c:",
        "a:b",
    ]
    return list(dict.fromkeys(words + inside + edges))[:200]


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_of_200_hostile_names_none_leaves_anything(workbench: Workbench, repository: Path) -> None:
    names = hostile_names()
    assert len(set(names)) == 200
    await make(workbench, "before")
    before = everything(repository)
    for name in names:
        with pytest.raises(WorkbenchError, match=r"^(BAD_WORKTREE_NAME|INVALID_ARGUMENTS)"):
            await workbench.call("create_worktree", name=name)
        for op in ("get_worktree_diff", "discard_worktree", "update_worktree", "integrate_worktree"):
            with pytest.raises(WorkbenchError, match=r"^(WORKTREE_NOT_FOUND|INVALID_ARGUMENTS)"):
                await workbench.call(op, worktree_name=name)
        try:
            made = await workbench.call("create_worktree", name="lab", branch_name=name)
        except WorkbenchError as error:
            assert error.code in ("BAD_BRANCH_NAME", "BRANCH_EXISTS", "INVALID_ARGUMENTS")
        else:
            assert git("branch", "--show-current", cwd=Path(made["path"])) == name
            await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True)
        assert everything(repository) == before
    for kind in ("worktrees", "repositories", "scratch"):
        assert {path.name for path in (repository / ".aiswarm" / kind).iterdir()} <= {"before"}
