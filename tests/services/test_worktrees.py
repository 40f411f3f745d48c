"""Worktrees in a real repository: made, asked about, merged when a person says so, given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, Admitted, git
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError
from workbench.settings import Settings
from workbench.shells.serve import Servers
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

SET_STATUS = Query("set_status", "UPDATE worktrees SET status = :status WHERE name = :name")


async def make(workbench: Workbench, name: str = "lab", **more: Any) -> Path:
    """Create a worktree as the operator; its directory."""
    return Path((await workbench.call("create_worktree", name=name, **more))["path"])


def commit(place: Path, name: str = "new.txt", text: str = "new\n") -> str:
    """Commit a file, as a worker would; the commit."""
    (place / name).write_text(text)
    git("add", "--all", cwd=place)
    git("commit", "-q", "-m", f"Change {name}", cwd=place)
    return git("rev-parse", "HEAD", cwd=place)


async def ask(workbench: Workbench, name: str = "lab", **more: Any) -> int:
    """Ask for the integration of a worktree; the approval's id."""
    asked = await workbench.call("integrate_worktree", worktree_name=name, **more)
    assert asked["state"] == "awaiting_approval"
    return int(asked["approval_id"])


async def one(workbench: Workbench, name: str = "lab") -> dict[str, Any]:
    """How a worktree stands."""
    (found,) = (await workbench.call("get_worktree_status", worktree_name=name))["worktrees"]
    return dict(found)


async def approval(workbench: Workbench, approval_id: int) -> dict[str, Any]:
    """An approval, whatever its state."""
    found = (await workbench.call("list_approvals", status=None))["approvals"]
    return next(a for a in found if a["id"] == approval_id)


async def kinds(workbench: Workbench) -> list[str]:
    """What happened to worktrees."""
    return [e["kind"] for e in (await workbench.call("list_events", kinds=["worktree.*"]))["events"]]


def everything(root: Path) -> tuple[str, str, str]:
    """What must not change when an integration is refused: refs, state and files of the person's checkout."""
    readme = (root / "README.md").read_text()
    # What a worker committed is taken in meanwhile.
    refs = "\n".join(line for line in git("for-each-ref", cwd=root).splitlines() if "/wb/" not in line)
    return refs, git("status", "--porcelain", cwd=root), readme


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


async def test_a_branch_that_somebody_deleted_does_not_spoil_the_list(workbench: Workbench, repository: Path) -> None:
    await make(workbench)
    git("update-ref", "-d", "refs/heads/wb/lab/main", cwd=repository)
    assert (await one(workbench))["commit"] is None
    with pytest.raises(NotFound, match="BRANCH_NOT_FOUND"):
        await ask(workbench)


# Asking


async def test_the_person_is_shown_what_would_be_merged(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    commit(place, "new.txt", "a\nb\n")
    tip = commit(place, "README.md", "# Theirs\n")
    commit(repository, "README.md", "# Mine\n")
    asked = await workbench.call("integrate_worktree", worktree_name="lab")
    assert (asked["worktree"], asked["target_branch"], asked["commit"]) == ("lab", "main", None)
    found = await approval(workbench, asked["approval_id"])
    payload = found["payload"]
    assert (found["kind"], found["subject"], found["requester"]) == ("integration", "worktree:lab", "operator")
    assert (payload["source_commit"], payload["ahead"], payload["behind"]) == (tip, 2, 1)
    assert payload["target_commit"] == git("rev-parse", "main", cwd=repository)
    assert [(c["subject"], c["author"]) for c in payload["commits"]] == [
        *(("Change README.md", "Person"), ("Change new.txt", "Person")),
    ]
    assert {f["path"] for f in payload["files"]} == {"new.txt", "README.md"}
    assert payload["conflicts"] == ["README.md"]


async def test_asking_again_is_the_same_question(workbench: Workbench) -> None:
    commit(await make(workbench))
    ids = await asyncio.gather(*(ask(workbench) for _ in range(3)))
    assert len({*ids, await ask(workbench)}) == 1
    assert len((await workbench.call("list_approvals"))["approvals"]) == 1


async def test_another_target_is_another_question(workbench: Workbench, repository: Path) -> None:
    git("branch", "dev", cwd=repository)
    commit(await make(workbench))
    first, second = await ask(workbench), await ask(workbench, target_branch="dev")
    assert (await approval(workbench, first))["status"] == "failed"
    assert (await approval(workbench, second))["payload"]["target"] == "dev"
    await workbench.call("approve", approval_id=second)
    assert git("show", "dev:new.txt", cwd=repository) == "new"
    assert git("ls-tree", "--name-only", "main", cwd=repository) == "README.md"
    assert not (repository / "new.txt").exists()


@pytest.mark.parametrize(
    ("case", "code"),
    [("nothing", "NOTHING_TO_INTEGRATE"), ("dirty", "WORKTREE_DIRTY"), ("target", "BRANCH_NOT_FOUND")],
)
async def test_what_cannot_be_merged_is_not_asked_about(workbench: Workbench, case: str, code: str) -> None:
    place = await make(workbench)
    if case != "nothing":
        commit(place)
    if case == "dirty":
        (place / "README.md").write_text("changed")
        (place / "other.txt").write_text("untracked")
    with pytest.raises(WorkbenchError, match=f"^{code}") as refused:
        await ask(workbench, target_branch="gone" if case == "target" else None)
    if case == "dirty":
        assert sorted(refused.value.details["files"]) == ["README.md", "other.txt"]
    assert (await workbench.call("list_approvals"))["approvals"] == []
    assert (await one(workbench))["status"] == "active"


@pytest.mark.parametrize("name", ["-x", "--help", "a..b", "HEAD"])
async def test_a_target_that_is_no_branch_name_is_refused(workbench: Workbench, name: str) -> None:
    commit(await make(workbench))
    with pytest.raises(BadInput, match="BAD_BRANCH_NAME"):
        await ask(workbench, target_branch=name)


@pytest.mark.parametrize("name", ["integrate_worktree", "discard_worktree"])
async def test_a_closed_or_unknown_worktree_cannot_be_integrated_or_discarded(workbench: Workbench, name: str) -> None:
    await make(workbench)
    await workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(Conflict, match=r"WORKTREE_CLOSED.*discarded"):
        await workbench.call(name, worktree_name="lab")
    with pytest.raises(NotFound, match="WORKTREE_NOT_FOUND"):
        await workbench.call(name, worktree_name="gone")


# Merging


async def test_a_yes_merges_updates_the_checkout_and_clears_up(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    tip = commit(place)
    (repository / "mine.txt").write_text("untracked\n")
    question = await ask(workbench)
    decided = await workbench.call("approve", approval_id=question)
    merged = git("rev-parse", "main", cwd=repository)
    assert decided["outcome"] == {"worktree": "lab", "state": "integrated", "commit": merged}
    assert (decided["approval"]["status"], decided["approval"]["outcome"]) == ("approved", decided["outcome"])
    assert git("rev-list", "--parents", "-1", "main", cwd=repository).split()[2] == tip
    assert (repository / "new.txt").read_text() == "new\n"
    assert git("status", "--porcelain", cwd=repository) == "?? mine.txt"
    assert "approval 1" in git("log", "-1", "--format=%B", cwd=repository)
    assert not place.exists()
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    assert len(git("worktree", "list", cwd=repository).splitlines()) == 1
    found = await one(workbench)
    assert (found["status"], found["integrated_commit"]) == ("integrated", merged)
    assert (await kinds(workbench)) == ["worktree.created", "worktree.integrated"]


async def test_a_no_changes_nothing_and_the_next_question_is_a_new_one(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    commit(place)
    before = everything(repository)
    question = await ask(workbench)
    decided = await workbench.call("reject", approval_id=question, reason="Not yet.")
    assert decided["outcome"] == {"worktree": "lab", "state": "rejected"}
    assert (decided["approval"]["status"], decided["approval"]["reason"]) == ("rejected", "Not yet.")
    assert everything(repository) == before
    assert place.exists()
    assert (await one(workbench))["status"] == "active"
    assert await ask(workbench) != question


async def test_a_yes_is_only_for_the_commit_that_was_shown(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    commit(place)
    question = await ask(workbench)
    commit(place, "sneaked.txt")
    before = everything(repository)
    with pytest.raises(Conflict, match="APPROVAL_VOID"):
        await workbench.call("approve", approval_id=question)
    assert everything(repository) == before
    assert (await approval(workbench, question))["status"] == "failed"
    assert (await one(workbench))["status"] == "active"
    await workbench.call("approve", approval_id=await ask(workbench))
    assert (repository / "sneaked.txt").exists()


async def test_a_new_commit_makes_a_new_question_and_voids_the_old(workbench: Workbench) -> None:
    place = await make(workbench)
    commit(place)
    first = await ask(workbench)
    commit(place, "more.txt")
    second = await ask(workbench)
    assert second != first
    assert (await approval(workbench, first))["status"] == "failed"
    with pytest.raises(Conflict, match="ALREADY_DECIDED"):
        await workbench.call("approve", approval_id=first)


@pytest.mark.parametrize("what", ["changed", "staged", "in the way"])
async def test_uncommitted_work_is_never_touched_and_the_question_waits(
    workbench: Workbench, repository: Path, what: str
) -> None:
    place = await make(workbench)
    commit(place)
    name = "new.txt" if what == "in the way" else "README.md"
    (repository / name).write_text("work of hours")
    if what == "staged":
        git("add", ".", cwd=repository)
    before = everything(repository)
    question = await ask(workbench)
    with pytest.raises(Conflict, match="TARGET_DIRTY") as refused:
        await workbench.call("approve", approval_id=question)
    assert refused.value.details["files"] == [name]
    assert everything(repository) == before
    assert (repository / name).read_text() == "work of hours"
    assert (await approval(workbench, question))["status"] == "pending"
    assert (await one(workbench))["status"] == "active"
    assert (await kinds(workbench))[-1] == "worktree.refused"
    git("stash", "-q", "--include-untracked", cwd=repository)
    await workbench.call("approve", approval_id=question)
    assert (repository / "new.txt").read_text() == "new\n"


async def test_a_conflict_lists_the_files_and_changes_nothing(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    commit(place)
    commit(place, "README.md", "# Theirs\n")
    commit(repository, "README.md", "# Mine\n")
    question = await ask(workbench)
    before = everything(repository)
    with pytest.raises(Conflict, match="MERGE_CONFLICT") as refused:
        await workbench.call("approve", approval_id=question)
    assert refused.value.details["files"] == ["README.md"]
    assert everything(repository) == before
    assert place.exists()
    assert (await approval(workbench, question))["status"] == "failed"
    assert (await one(workbench))["status"] == "active"
    git("merge", "-q", "-X", "ours", "--no-edit", git("rev-parse", "main", cwd=repository), cwd=place)
    await workbench.call("approve", approval_id=await ask(workbench))
    assert (repository / "README.md").read_text() == "# Theirs\n"


async def test_a_target_that_moved_is_merged_as_it_is_now(workbench: Workbench, repository: Path) -> None:
    commit(await make(workbench))
    question = await ask(workbench)
    mine = commit(repository, "mine.txt")
    await workbench.call("approve", approval_id=question)
    assert git("merge-base", "--is-ancestor", mine, "main", cwd=repository) == ""
    assert (repository / "mine.txt").exists()
    assert (repository / "new.txt").exists()


async def test_worktrees_are_integrated_one_after_the_other_also_when_approved_at_once(
    workbench: Workbench, repository: Path
) -> None:
    names = ["a", "b", "c"]
    for name in names:
        commit(await make(workbench, name), f"{name}.txt")
    questions = [await ask(workbench, name) for name in names]
    calls = [workbench.call("approve", approval_id=question) for question in [*questions, *questions]]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, dict) for answer in answers) == 3
    assert sorted(p.name for p in repository.glob("?.txt")) == ["a.txt", "b.txt", "c.txt"]
    assert git("rev-list", "--count", "--merges", "main", cwd=repository) == "3"
    assert git("status", "--porcelain", cwd=repository) == ""


async def test_without_a_persons_approval_needs_the_setting(repository: Path, settings: Settings) -> None:
    async with Workbench.open(settings) as workbench:
        commit(await make(workbench))
        with pytest.raises(Refused, match="APPROVAL_REQUIRED"):
            await ask(workbench, require_human_approval=False)
        assert (await workbench.call("list_approvals"))["approvals"] == []
    async with Workbench.open(settings.model_copy(update={"integration_requires_approval": False})) as workbench:
        made = await workbench.call("integrate_worktree", worktree_name="lab", require_human_approval=False)
        assert (made["state"], made["commit"]) == ("integrated", git("rev-parse", "main", cwd=repository))
        assert (await approval(workbench, made["approval_id"]))["status"] == "approved"
    assert (repository / "new.txt").exists()


async def test_a_choice_means_nothing_to_an_integration(workbench: Workbench) -> None:
    commit(await make(workbench))
    question = await ask(workbench)
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("approve", approval_id=question, choices={"target": "dev"})
    assert (await approval(workbench, question))["status"] == "pending"


# Giving up


async def test_discarding_keeps_the_branch_and_takes_the_question_back(workbench: Workbench, repository: Path) -> None:
    place = await make(workbench)
    tip = commit(place)
    question = await ask(workbench)
    (place / "uncommitted.txt").write_text("lost")
    discarded = await workbench.call("discard_worktree", worktree_name="lab", reason="Dead end.")
    assert (discarded["status"], discarded["integrated_commit"]) == ("discarded", None)
    assert not place.exists()
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    assert (await approval(workbench, question))["status"] == "rejected"
    assert not (repository / "new.txt").exists()
    event = (await workbench.call("list_events", kinds=["worktree.discarded"]))["events"][0]
    assert event["data"] == {"reason": "Dead end."}


async def test_a_name_can_be_used_again_with_another_branch(workbench: Workbench) -> None:
    commit(await make(workbench))
    await workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(Conflict, match="BRANCH_EXISTS"):
        await make(workbench)
    place = await make(workbench, branch_name="wb/lab/2")
    assert place.exists()
    found = await one(workbench)
    assert (found["status"], found["ahead"], found["branch_name"]) == ("active", 0, "wb/lab/2")


# After a crash


@pytest.mark.parametrize("merged", [True, False])
async def test_a_crash_between_merge_and_record_is_settled_at_the_next_start(
    repository: Path, settings: Settings, merged: bool
) -> None:
    async with Workbench.open(settings) as workbench:
        place = await make(workbench)
        tip = commit(place)
        question = await ask(workbench)
        await workbench.store.write(lambda tx: tx.run(SET_STATUS, name="lab", status="integrating"))
    if merged:
        git("merge", "-q", "--no-ff", "--no-edit", tip, cwd=repository)
    before = git("rev-parse", "main", cwd=repository)
    async with Workbench.open(settings) as workbench:
        with pytest.raises(Conflict, match=r"WORKTREE_CLOSED.*integrating"):
            await ask(workbench)
        async with Servers(workbench) as servers:
            await servers.start(0)
            found = await one(workbench)
            status = (await approval(workbench, question))["status"]
            assert git("rev-parse", "main", cwd=repository) == before
            if merged:
                assert (found["status"], found["integrated_commit"], status) == ("integrated", before, "approved")
                assert not place.exists()
                assert (await kinds(workbench))[-1] == "worktree.integrated"
            else:
                assert (found["status"], status) == ("active", "pending")
                assert (await kinds(workbench))[-1] == "worktree.refused"
                await workbench.call("approve", approval_id=question)
                assert (repository / "new.txt").exists()
