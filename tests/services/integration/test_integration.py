"""Merging what worktrees hold, in real repositories: asked for, gated, approved, queued, merged, or refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from tests.services.worktrees.lab import approval, ask, commit, everything, finished, worktree_row
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.model import ServerInfo
from workbench.services.integration import queue
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def pending(workbench: Workbench) -> list[dict[str, Any]]:
    """The questions that wait."""
    return list((await workbench.call("list_approvals"))["approvals"])


# Asking


async def test_an_approval_shows_the_person_the_merge(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    commit(place, "new.txt", "a\nb\n")
    tip = commit(place, "README.md", "# Theirs\n")
    commit(repository, "README.md", "# Mine\n")
    request = await workbench.call("integrate_worktree", worktree_name="lab")
    assert (request["worktree"], request["target_branch"], request["commit"]) == ("lab", "main", None)
    found = await approval(workbench, request["approval_id"])
    payload = found["payload"]
    assert (found["kind"], found["subject"], found["requester"]) == ("integration", "worktree:lab", "operator")
    assert (payload["source_commit"], payload["ahead"], payload["behind"]) == (tip, 2, 1)
    assert payload["target_commit"] == git("rev-parse", "main", cwd=repository)
    assert [(c["subject"], c["author"]) for c in payload["commits"]] == [
        *(("Change README.md", "Person"), ("Change new.txt", "Person")),
    ]
    assert {f["path"] for f in payload["files"]} == {"new.txt", "README.md"}
    assert payload["conflicts"] == ["README.md"]


async def test_a_request_for_another_target_is_another_approval(workbench: Workbench, repository: Path) -> None:
    git("branch", "dev", cwd=repository)
    commit(await given.worktree(workbench))
    first, second = await ask(workbench), await ask(workbench, target_branch="dev")
    assert (await approval(workbench, first))["status"] == "failed"
    assert (await approval(workbench, second))["payload"]["target"] == "dev"
    await workbench.call("approve", approval_id=second)
    assert git("show", "dev:new.txt", cwd=repository) == "new"
    assert git("ls-tree", "--name-only", "main", cwd=repository) == "README.md"
    assert not (repository / "new.txt").exists()


async def test_asking_again_is_the_same_question_until_there_is_a_new_commit(workbench: Workbench) -> None:
    place = await given.worktree(workbench)
    commit(place)
    ids = await asyncio.gather(*(ask(workbench) for _ in range(3)))
    first = await ask(workbench)
    assert {*ids} == {first}
    await given.refuses("INVALID_ARGUMENTS", workbench.call("approve", approval_id=first, choices={"target": "dev"}))
    (pending,) = (await workbench.call("list_approvals"))["approvals"]
    assert (pending["id"], pending["status"]) == (first, "pending")
    commit(place, "more.txt")
    assert await ask(workbench) != first
    assert (await approval(workbench, first))["status"] == "failed"
    await given.refuses("ALREADY_DECIDED", workbench.call("approve", approval_id=first))


async def test_an_impossible_merge_creates_no_approval(workbench: Workbench) -> None:
    async def refusal(op: str = "integrate_worktree", name: str = "lab", **more: Any) -> str:
        return (await given.refusal(workbench.call(op, worktree_name=name, **more))).code

    place = await given.worktree(workbench)
    assert await refusal() == "NOTHING_TO_INTEGRATE"
    commit(place)
    assert await refusal(target_branch="gone") == "BRANCH_NOT_FOUND"
    for name in ("-x", "--help", "a..b", "HEAD"):
        assert (name, await refusal(target_branch=name)) == (name, "BAD_BRANCH_NAME")
    (place / "README.md").write_text("changed")
    (place / "other.txt").write_text("untracked")
    error = await given.refusal(ask(workbench))
    assert (error.code, sorted(error.details["files"])) == ("WORKTREE_DIRTY", ["README.md", "other.txt"])
    assert (await workbench.call("list_approvals"))["approvals"] == []
    assert (await worktree_row(workbench))["status"] == "active"
    await workbench.call("discard_worktree", worktree_name="lab", force=True)
    for op in ("integrate_worktree", "discard_worktree"):
        with pytest.raises(Conflict, match=r"WORKTREE_CLOSED.*discarded"):
            await workbench.call(op, worktree_name="lab")
        assert await refusal(op, "gone") == "WORKTREE_NOT_FOUND"


# Merging


async def test_an_approval_merges_the_shown_commit_and_clears_up(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    tip = commit(place)
    (repository / "mine.txt").write_text("untracked\n")
    question = await ask(workbench)
    shown = (await approval(workbench, question))["payload"]
    decided = await workbench.call("approve", approval_id=question)
    merged = git("rev-parse", "main", cwd=repository)
    assert (shown["merged_commit"], shown["fast_forward"]) == (merged, False)
    parents = git("rev-list", "--parents", "-1", "main", cwd=repository).split()[1:]
    assert parents == [shown["target_commit"], shown["source_commit"]] == [shown["target_commit"], tip]
    assert decided["outcome"] | {"decides": []} == {
        "worktree": "lab",
        "state": "integrated",
        "commit": merged,
        "decides": [],
    }
    assert (decided["approval"]["status"], decided["approval"]["outcome"]) == ("approved", decided["outcome"])
    assert (repository / "new.txt").read_text() == "new\n"
    assert git("status", "--porcelain", cwd=repository) == "?? mine.txt"
    assert "approval 1" in git("log", "-1", "--format=%B", cwd=repository)
    assert not place.exists()
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    assert len(git("worktree", "list", cwd=repository).splitlines()) == 1
    worktree = await worktree_row(workbench)
    assert (worktree["status"], worktree["integrated_commit"]) == ("integrated", merged)
    kinds = await given.kinds(workbench, "worktree.*")
    assert kinds == ["worktree.created", "worktree.imported", "worktree.integrated"]


async def test_a_rejection_changes_nothing_and_the_next_request_is_a_new_approval(
    workbench: Workbench, repository: Path
) -> None:
    place = await given.worktree(workbench)
    commit(place)
    before = everything(repository)
    question = await ask(workbench)
    decided = await workbench.call("reject", approval_id=question, reason="Not yet.")
    assert decided["outcome"] == {"worktree": "lab", "state": "rejected"}
    assert (decided["approval"]["status"], decided["approval"]["reason"]) == ("rejected", "Not yet.")
    assert everything(repository) == before
    assert place.exists()
    assert (await worktree_row(workbench))["status"] == "active"
    assert await ask(workbench) != question


async def test_an_approval_covers_only_the_shown_commit(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    commit(place)
    question = await ask(workbench)
    commit(place, "sneaked.txt")
    before = everything(repository)
    await given.refuses("APPROVAL_VOID", workbench.call("approve", approval_id=question))
    assert everything(repository) == before
    assert (await approval(workbench, question))["status"] == "failed"
    assert (await worktree_row(workbench))["status"] == "active"
    await workbench.call("approve", approval_id=await ask(workbench))
    assert (repository / "sneaked.txt").exists()


@pytest.mark.parametrize("what", ["changed", "staged", "in the way"])
async def test_uncommitted_work_stays_and_the_question_waits(workbench: Workbench, repository: Path, what: str) -> None:
    place = await given.worktree(workbench)
    commit(place)
    name = "new.txt" if what == "in the way" else "README.md"
    if what == "changed":
        commit(place, name, "# Theirs\n")
    (repository / name).write_text("work of hours")
    if what == "staged":
        git("add", ".", cwd=repository)
    before = everything(repository)
    question = await ask(workbench)
    error = await given.refuses("TARGET_DIRTY", workbench.call("approve", approval_id=question))
    assert error.details["files"] == [name]
    assert everything(repository) == before
    assert (repository / name).read_text() == "work of hours"
    assert (await approval(workbench, question))["status"] == "pending"
    assert (await worktree_row(workbench))["status"] == "active"
    assert (await given.kinds(workbench, "worktree.*"))[-1] == "worktree.refused"
    git("stash", "-q", "--include-untracked", cwd=repository)
    await workbench.call("approve", approval_id=question)
    assert (repository / "new.txt").read_text() == "new\n"


async def test_neither_an_edited_notebook_nor_a_moved_target_holds_up_a_merge(
    workbench: Workbench, repository: Path
) -> None:
    commit(await given.worktree(workbench))
    question = await ask(workbench)
    mine = commit(repository, "mine.txt")
    (repository / "README.md").write_text("outputs of a cell")
    await workbench.call("approve", approval_id=question)
    git("merge-base", "--is-ancestor", mine, "main", cwd=repository)
    files = {path.name: path.read_text() for path in repository.iterdir() if path.is_file()}
    assert files == {"README.md": "outputs of a cell", "mine.txt": "new\n", "new.txt": "new\n"}
    assert git("status", "--porcelain", "--untracked-files=no", cwd=repository) == "M README.md"


async def test_approve_returns_at_once_and_the_feed_reports_the_merge(served: Served, repository: Path) -> None:
    workbench = served.workbench
    commit(await given.worktree(workbench))
    question = await ask(workbench)
    async with workbench.feed.subscribe("worktree.integrated") as events:
        async with workbench._ctx.local.repositories.exclusive():
            decided = await workbench.call("approve", approval_id=question)
            assert decided["outcome"] == {"worktree": "lab", "state": "queued", "commit": None}
            await given.refuses("ALREADY_DECIDED", workbench.call("approve", approval_id=question))
        merged = (await anext(events)).data["commit"]
    assert (await approval(workbench, question))["outcome"]["commit"] == merged
    assert git("rev-parse", "main", cwd=repository) == merged


async def test_a_merge_refused_after_approval_is_asked_again_with_the_reason(served: Served, repository: Path) -> None:
    workbench = served.workbench
    commit(await given.worktree(workbench))
    question = await ask(workbench)
    (repository / "new.txt").write_text("work of hours")
    async with workbench.feed.subscribe("approval.requested") as events:
        await workbench.call("approve", approval_id=question)
        await anext(events)
    first, again = (await workbench.call("list_approvals", status=None, kind="integration"))["approvals"]
    assert (first["status"], first["outcome"]["code"]) == ("failed", "TARGET_DIRTY")
    assert (again["status"], again["payload"]["refused"]["code"]) == ("pending", "TARGET_DIRTY")
    assert (repository / "new.txt").read_text() == "work of hours"


async def test_an_approval_that_is_void_is_not_asked_again(workbench: Workbench) -> None:
    place = await given.worktree(workbench)
    commit(place)
    question = await ask(workbench)
    await workbench.serving(ServerInfo(pid=1, started=0.0, nonce="here", url="", ws_url="", mcp_url=""))
    await workbench.call("approve", approval_id=question)
    commit(place, "late.txt")
    await queue.advance(workbench._ctx)
    (only,) = (await workbench.call("list_approvals", status=None, kind="integration"))["approvals"]
    assert (only["id"], only["status"], only["outcome"]["code"]) == (question, "failed", "APPROVAL_VOID")
    assert (await worktree_row(workbench))["status"] == "active"


async def test_concurrently_approved_worktrees_are_merged_in_turn(workbench: Workbench, repository: Path) -> None:
    names = ["a", "b", "c"]
    for name in names:
        commit(await given.worktree(workbench, name), f"{name}.txt")
    questions = [await ask(workbench, name) for name in names]
    calls = [workbench.call("approve", approval_id=question) for question in [*questions, *questions]]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, dict) for answer in answers) == 3
    assert sorted(p.name for p in repository.glob("?.txt")) == ["a.txt", "b.txt", "c.txt"]
    assert git("rev-list", "--count", "--merges", "main", cwd=repository) == "3"
    assert git("status", "--porcelain", cwd=repository) == ""


async def test_merging_without_approval_needs_the_setting(repository: Path, settings: Settings) -> None:
    async with Workbench.open(settings) as workbench:
        commit(await given.worktree(workbench))
        await given.refuses("APPROVAL_REQUIRED", ask(workbench, require_human_approval=False))
        assert (await workbench.call("list_approvals"))["approvals"] == []
    async with Workbench.open(settings.model_copy(update={"integration_requires_approval": False})) as workbench:
        request = await workbench.call("integrate_worktree", worktree_name="lab", require_human_approval=False)
        assert (request["state"], request["commit"]) == ("integrated", git("rev-parse", "main", cwd=repository))
        assert (await approval(workbench, request["approval_id"]))["status"] == "approved"
    assert (repository / "new.txt").exists()


async def test_only_one_of_a_concurrent_approval_and_rejection_counts(workbench: Workbench, repository: Path) -> None:
    for name in ("a", "b", "c"):
        commit(await given.worktree(workbench, name), f"{name}.txt")
        question = await ask(workbench, name)
        answers = [workbench.call(verb, approval_id=question) for verb in ("approve", "reject", "reject")]
        if name == "b":
            answers.reverse()
        done = [a for a in await asyncio.gather(*answers, return_exceptions=True) if isinstance(a, dict)]
        assert len(done) == 1
        worktree = await worktree_row(workbench, name)
        integrated = done[0]["outcome"]["state"] == "integrated"
        assert worktree["status"] == ("integrated" if integrated else "active")
        assert (repository / f"{name}.txt").exists() == integrated


# What is shown besides


@pytest.mark.parametrize("by", ["argument", "setting"])
async def test_a_target_is_fast_forwarded_if_asked_for(settings: Settings, repository: Path, by: str) -> None:
    changed = settings.model_copy(update={"integration_fast_forward": by == "setting"})
    async with Workbench.open(changed) as workbench:
        tip = commit(await given.worktree(workbench))
        question = await ask(workbench, **({"fast_forward": True} if by == "argument" else {}))
        assert (await approval(workbench, question))["payload"]["merged_commit"] == tip
        await workbench.call("approve", approval_id=question)
        assert git("rev-parse", "main", cwd=repository) == tip
        commit(await given.worktree(workbench, "other"), "other.txt")
        mine = commit(repository, "mine.txt")
        await workbench.call("approve", approval_id=await ask(workbench, "other", fast_forward=True))
        assert git("rev-parse", "main^1", cwd=repository) == mine
        commit(await given.worktree(workbench, "third"), "third.txt")
        await workbench.call("approve", approval_id=await ask(workbench, "third", fast_forward=False))
        assert len(git("rev-list", "--parents", "-1", "main", cwd=repository).split()) == 3


async def test_an_approval_lists_changes_to_git_configuration_hooks_and_tags(
    workbench: Workbench, repository: Path
) -> None:
    commit(await given.worktree(workbench))
    commit(await given.worktree(workbench, "other"), "other.txt")
    await workbench.call("approve", approval_id=await ask(workbench, "other"))
    assert (await approval(workbench, await ask(workbench)))["payload"]["changed"] == []
    git("config", "alias.x", "status", cwd=repository)
    (repository / ".git" / "hooks" / "post-merge").write_text("#!/bin/sh\n")
    git("tag", "v1", cwd=repository)
    commit(await given.worktree(workbench, "young"), "young.txt")
    assert (await approval(workbench, await ask(workbench, "young")))["payload"]["changed"] == []
    commit(repository / ".aiswarm" / "worktrees" / "lab", "more.txt")
    payload = (await approval(workbench, await ask(workbench)))["payload"]
    assert payload["changed"] == ["config", "hooks/post-merge", "refs/tags/v1"]
    (event,) = (await workbench.call("list_events", kinds=["worktree.protected_changed"]))["events"]
    assert event["data"]["changed"] == payload["changed"]


async def test_a_branch_with_settings_or_state_is_refused(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    state = place / ".aiswarm"
    state.mkdir(exist_ok=True)
    (state / "settings.toml").write_text('confinement = "off"\n')
    git("add", "-f", ".aiswarm/settings.toml", cwd=place)
    git("commit", "-q", "-m", "Settings", cwd=place)
    error = await given.refuses("STATE_IN_BRANCH", ask(workbench))
    assert error.details["files"] == [".aiswarm/settings.toml"]
    git("rm", "-q", "--cached", ".aiswarm/settings.toml", cwd=place)
    (state / "settings.toml").unlink()
    (state / "personas").mkdir()
    (state / "personas" / "poet.md").write_text("---\nname: Poet\n---\nRhyme.\n")
    git("add", "-A", "-f", ".", cwd=place)
    git("commit", "-q", "-m", "A persona", cwd=place)
    await workbench.call("approve", approval_id=await ask(workbench))
    assert (repository / ".aiswarm" / "personas" / "poet.md").exists()


# The queue


async def test_the_queue_merges_one_by_one_and_sends_conflicts_back(settings: Settings, repository: Path) -> None:
    changed = settings.model_copy(update={"integration_gates": ("test ! -e broken",)})
    async with Workbench.open(changed) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        files = {"a": "a.txt", "b": "README.md", "c": "README.md", "d": "d.txt", "e": "e.txt"}
        places = {name: await given.worktree(workbench, name) for name in files}
        for name, file in files.items():
            commit(places[name], file, f"{name}\n")
        questions = {name: await ask(workbench, name) for name in files}
        for question in questions.values():
            await workbench.call("approve", approval_id=question)
        commit(places["e"], "late.txt")
        found = {name: await finished(workbench, question) for name, question in questions.items()}
        outcomes = {name: one_["outcome"].get("code", one_["outcome"]["state"]) for name, one_ in found.items()}
        assert outcomes == {
            **{"a": "integrated", "b": "integrated", "c": "MERGE_CONFLICT", "d": "integrated"},
            "e": outcomes["e"],
        }
        assert outcomes["e"] in ("APPROVAL_VOID", "integrated")
        assert found["c"]["outcome"]["details"]["files"] == ["README.md"]
        assert (repository / "README.md").read_text() == "b\n"
        again = await given.until(lambda: pending(workbench))
        assert [(one_["payload"]["worktree"], one_["payload"]["conflicts"]) for one_ in again] == [("c", ["README.md"])]
        assert again[0]["payload"]["refused"]["code"] == "MERGE_CONFLICT"
        assert again[0]["payload"]["gates"] == []
        assert (await worktree_row(workbench, "c"))["status"] == "active"
        await workbench.call("approve", approval_id=again[0]["id"])
        assert (await finished(workbench, again[0]["id"]))["outcome"]["code"] == "MERGE_CONFLICT"
        assert git("status", "--porcelain", cwd=repository) == ""
