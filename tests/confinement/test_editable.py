"""An environment that imports the person's own files is refused in a worktree, as it would test those."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served, limited, typed
from tests.services.worktrees.lab import approval, ask, commit
from tests.worker.working import ran, working
from workbench.app import Workbench
from workbench.confinement import Box
from workbench.confinement.editable import Editable, installs
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(50)]

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def environment(place: Path) -> Path:
    """A new virtual environment, without programs; its directory of packages."""
    packages = place / "lib" / VERSION / "site-packages"
    packages.mkdir(parents=True)
    (place / "pyvenv.cfg").touch()
    return packages


def noted_by_url(packages: Path, source: Path, editable: bool = True) -> Path:
    (info := packages / "lab-1.0.dist-info").mkdir()
    noted = {"url": source.as_uri(), "dir_info": {"editable": True} if editable else {}}
    (info / "direct_url.json").write_text(json.dumps(noted))
    return source / "src"


def noted_in_a_file(packages: Path, source: Path) -> Path:
    (packages / "lab.pth").write_text(f"# lab\nimport os\n{source / 'src'}\n")
    return source / "src"


def noted_in_a_finder(packages: Path, source: Path) -> Path:
    (packages / "__editable__.lab.pth").write_text("import __editable___lab_finder; __editable___lab_finder.install()")
    mapping = f"MAPPING: dict[str, str] = {{'lab': {str(source / 'src' / 'lab')!r}}}\n"
    (packages / "__editable___lab_finder.py").write_text(f"import sys\n{mapping}raise SystemExit\n")
    return source / "src"


def noted_in_a_redirection(packages: Path, source: Path) -> Path:
    (packages / "_editable_impl_lab.pth").write_text("import _editable_impl_lab")
    mapped = f"F.map_module('lab', {str(source / 'src' / 'lab' / '__init__.py')!r})"
    (packages / "_editable_impl_lab.py").write_text(f"from editables.redirector import F\nF.install()\n{mapped}\n")
    return source / "src"


def noted_by_develop(packages: Path, source: Path) -> Path:
    (packages / "lab.egg-link").write_text(f"{source / 'src'}\n../")
    return source / "src"


WAYS: dict[str, Callable[[Path, Path], Path]] = {
    way.__name__: way
    for way in (noted_by_url, noted_in_a_file, noted_in_a_finder, noted_in_a_redirection, noted_by_develop)
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src" / "lab").mkdir(parents=True)
    return tmp_path / "project"


def find_editable(project: Path, *read: Path, enforce: bool = True, path: str = "/usr/bin") -> list[Editable]:
    box = Box(write=(), read=read, scratch=project.parent / "scratch", enforce=enforce)
    return [one for one in installs(box, project, path) if one.noted.is_relative_to(project.parent)]


@pytest.mark.parametrize("way", WAYS)
def test_an_editable_install_of_the_project_is_found_however_it_is_noted(project: Path, way: str) -> None:
    place = project / ".venv"
    directory = WAYS[way](environment(place), project)
    (place / "bin").mkdir()
    for opened in (place, place / "bin", place / "lib" / VERSION, project):
        assert [one.directory for one in find_editable(project, opened, project)] == [directory]
    assert [one.directory for one in find_editable(project, enforce=False, path=str(place / "bin"))] == [directory]


def test_environments_that_import_nothing_of_the_persons_are_used(project: Path, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    for number, note in enumerate((noted_by_url, noted_in_a_file, noted_in_a_finder, noted_by_develop)):
        note(environment(project / f"{number}"), other)
    noted_by_url(environment(project / "copied"), project, editable=False)
    noted_by_url(environment(project / "vcs"), project / "vcs" / "src" / "theirs")
    packages = environment(project / "strange")
    (packages / "a.pth").write_bytes(b"\xff\xfe\n")
    (packages / "__editable___a_finder.py").write_text("MAPPING = {")
    (packages / "b.dist-info").mkdir()
    (packages / "b.dist-info" / "direct_url.json").write_text("[]")
    assert (
        find_editable(project, project)
        == find_editable(project, enforce=False, path=str(project / "strange" / "bin"))
        == []
    )


@pytest.fixture
def opened(repository: Path) -> Path:
    """The programs of her environment, which imports her own files."""
    place = repository / ".venv"
    noted_in_a_file(environment(place), repository)
    (place / "bin").mkdir()
    return place / "bin"


@pytest.mark.parametrize("lab", ["lab", None])
async def test_a_task_in_a_worktree_is_refused_before_it_runs_anything(
    served: Served, settle: Admit, opened: Path, lab: str | None
) -> None:
    ada = await settle("ada", "lab")
    async with working(served, ada.token, lab, environment={"PATH": f"{opened}:{os.defpath}"}):
        task = await ran(served, "touch ran", max_retries=3)
    now = await given.task_now(served.workbench, task["id"])
    assert (now["status"], len(now["attempts"])) == ("failed", 1)
    assert not (served.workbench.settings.worktrees / "lab" / "ran").exists()
    for part in ("EDITABLE_ENVIRONMENT: ", str(opened.parent), f"names {opened.parents[1] / 'src'}", "nothing was run"):
        assert part in now["error_message"]


@pytest.mark.long
@limited(confinement="off", integration_gates=["touch ran"])
async def test_a_gate_and_a_persons_own_command_are_refused_too(
    settings: Settings, opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{opened}:{os.environ['PATH']}")
    async with Workbench.open(settings) as workbench:
        commit(await given.worktree(workbench))
        (gate,) = (await approval(workbench, await ask(workbench)))["payload"]["gates"]
        assert (gate["state"], gate["output"].partition(":")[0]) == ("failed", "EDITABLE_ENVIRONMENT")
    monkeypatch.setenv("WORKBENCH_CONFINEMENT", "off")
    ran = await asyncio.to_thread(typed, "--project", str(settings.project), "worktrees", "run", "lab", "--", "true")
    assert (ran.status, ran.err.partition(":")[0]) == (1, "EDITABLE_ENVIRONMENT")
