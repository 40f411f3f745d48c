"""Worktrees outside of the project's tree, where no box has them stand at its path: nothing is found by walking up."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import given
from tests.conftest import git, limited
from tests.services.worktrees.lab import ask, commit, settled, worktree_row
from workbench.app import Workbench
from workbench.confinement import abilities
from workbench.confinement.refusals import explanation
from workbench.git import Repository
from workbench.services.worktrees.places import WorktreeLocation, box_of
from workbench.services.worktrees.rescue import move_to_trash
from workbench.state import outside
from workbench.state.root import find_project
from workbench.state.settings import Settings
from workbench.trust import state_directory

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

WITHOUT = {"confinement_namespaces": "off"}
NO_PROJECT_AROUND = "d=$PWD; while [ $d != / ]; do d=$(dirname $d); test ! -e $d/pyproject.toml || exit 1; done"


@limited(**WITHOUT, integration_gates=[NO_PROJECT_AROUND])
async def test_without_namespaces_a_worktree_lies_outside_from_its_creation_to_its_merge(
    workbench: Workbench, repository: Path
) -> None:
    (repository / "pyproject.toml").touch()
    place, link = await given.worktree(workbench), repository / ".aiswarm" / "worktrees" / "lab"
    assert not place.is_relative_to(repository)
    assert link.readlink() == place
    assert find_project(place) == repository
    assert str(place) in git("worktree", "list", cwd=repository)
    commit(place)
    request = await settled(workbench, await ask(workbench))
    assert [gate["state"] for gate in request["payload"]["gates"]] == ["passed"]
    assert list(outside.of(workbench.settings.home).glob("gates/*/*")) == []
    await workbench.call("approve", approval_id=request["id"])
    assert (repository / "new.txt").exists()
    assert (link.is_symlink(), place.exists()) == (False, False)
    assert (await given.worktree(workbench, branch_name="again")) == place


@pytest.mark.parametrize("way", ["off", "auto"])
async def test_a_worktree_is_used_where_it_was_made_whatever_is_possible_now(settings: Settings, way: str) -> None:
    other = "auto" if way == "off" else "off"
    async with Workbench.open(settings.model_copy(update={"confinement_namespaces": way})) as workbench:
        place = await given.worktree(workbench)
        (place / "new.txt").touch()
    async with Workbench.open(settings.model_copy(update={"confinement_namespaces": other})) as workbench:
        row = await worktree_row(workbench)
        assert (row["path"], row["dirty"]) == (str(place), ["new.txt"])
        commit(place)
        await workbench.call("approve", approval_id=await ask(workbench))
        assert not place.exists()


@pytest.mark.sqlite("a copy of a project has a copy of the store's file")
@limited(**WITHOUT)
async def test_a_moved_project_keeps_its_worktrees_and_a_copy_has_none(settings: Settings, tmp_path: Path) -> None:
    async with Workbench.open(settings) as workbench:
        place = await given.worktree(workbench)
        (place / "new.txt").touch()
    copy = Path(shutil.copytree(settings.project, tmp_path / "copy", symlinks=True))
    state_directory.adopt(copy)
    async with Workbench.open(Settings(project=copy, **WITHOUT)) as workbench:
        await given.refuses("WORKTREE_GONE", workbench.call("update_worktree", worktree_name="lab"))
        await workbench.call("discard_worktree", worktree_name="lab", force=True)
    shutil.rmtree(copy)
    moved = settings.project.rename(tmp_path / "moved")
    state_directory.adopt(moved)
    async with Workbench.open(Settings(project=moved, **WITHOUT)) as workbench:
        row = await worktree_row(workbench)
        assert (row["path"], row["dirty"]) == (str(place), ["new.txt"])
        assert str(place) in git("worktree", "list", cwd=moved)


@limited(**WITHOUT)
@pytest.mark.skipif(not abilities().complete, reason=abilities().summary)
async def test_no_setting_is_named_for_the_files_of_another_worktree(workbench: Workbench) -> None:
    lab, other = await given.worktree(workbench), await given.worktree(workbench, "other")
    settings, place = workbench.settings, WorktreeLocation.of(workbench.settings, "lab")
    box = box_of(settings, Repository.open(settings.project), place)
    text = explanation([f"cat: {other}/README.md: Permission denied"], box, lab)
    assert "belongs to Workbench" in text
    assert "confinement_read" not in text


@limited(**WITHOUT)
async def test_a_link_in_the_place_of_a_worktree_leads_nowhere(workbench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (links := workbench.settings.worktrees).mkdir(exist_ok=True)
    for name, target in (("theirs", tmp_path / "precious"), ("empty", outside.directory() / "x" / "empty")):
        (links / name).symlink_to(target)
    pruned = await workbench.call("prune_worktrees", apply=True)
    assert {item["name"]: item["safe"] for item in pruned["items"] if item["kind"] == "worktree"} == {
        "theirs": False,
        "empty": False,
    }
    assert (tmp_path / "precious").exists()
    error = await given.refuses("WORKTREE_PATH_TAKEN", workbench.call("create_worktree", name="theirs"))
    assert str(links / "theirs") in error.message


def test_files_on_another_disk_stay_there_when_they_are_moved_to_the_trash(tmp_path: Path) -> None:
    with TemporaryDirectory(
        dir="/dev/shm" if tmp_path.stat().st_dev != Path("/dev/shm").stat().st_dev else "/tmp"
    ) as d:
        (there := Path(d) / "lab").mkdir()
        (there / "work.txt").write_text("work of hours")
        (git_dir := tmp_path / "repository").mkdir()
        into = move_to_trash(tmp_path / "trash", WorktreeLocation("lab", there, git_dir, tmp_path), "T")
        assert not there.exists()
        assert ((into / "files" / "work.txt").read_text(), (into / "repository").is_dir()) == ("work of hours", True)
