"""The code that is tested is the worktree's, however the project is installed, and wherever the worktree stands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.confinement.scene import PEOPLE, Scene
from tests.users import SYSTEM_PYTHON
from workbench.confinement import Box, abilities, box_for_worktree
from workbench.confinement.editable import own_path, preceded

pytestmark = pytest.mark.timeout(120)

LAYOUTS = {"src": "src/lab", "flat": "lab", "namespace": "src/ours/lab"}
PACKAGES = {"src": "src/lab", "flat": "lab", "namespace": "src/ours"}
"""What hatchling is told to pack."""
MODES = ["standing", "without namespaces", "unconfined"]
TELL = "import importlib, sys; print(importlib.import_module(sys.argv[1] + '.core').WHOSE)"


def module_of(layout: str) -> str:
    return LAYOUTS[layout].removeprefix("src/").replace("/", ".")


def write_package(top: Path, layout: str, whose: str) -> None:
    """A package with a module that says whose it is, beside directories that are no packages."""
    (place := top / LAYOUTS[layout]).mkdir(parents=True)
    (place / "__init__.py").touch()
    (place / "core.py").write_text(f"WHOSE = {whose!r}\n")
    for name in ("tests", "docs"):
        (top / name).mkdir(exist_ok=True)
        (top / name / "conf.py").touch()


def by_a_path(scene: Scene, packages: Path, layout: str) -> None:
    """As pip, uv, hatchling and setuptools do mostly."""
    (info := packages / "lab-1.0.dist-info").mkdir()
    url = {"url": scene.project.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(url))
    (packages / "_lab.pth").write_text(str(scene.project / ("src" if layout != "flat" else "")) + "\n")


def by_the_finder_of_setuptools(scene: Scene, packages: Path, layout: str) -> None:
    """As setuptools does in a flat layout, among others."""
    make_finder = pytest.importorskip("setuptools.command.editable_wheel")._finder_template
    namespaces = {"ours": [str(scene.project / "src" / "ours")]} if layout == "namespace" else {}
    text = make_finder("__editable___lab_finder", {module_of(layout): str(scene.project / LAYOUTS[layout])}, namespaces)
    (packages / "__editable___lab_finder.py").write_text(text)
    (packages / "__editable__.lab.pth").write_text("import __editable___lab_finder; __editable___lab_finder.install()")


def new_environment(scene: Scene) -> Path:
    """Her environment in the project; its directory of packages."""
    venv = scene.project / ".venv"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", "--symlinks", venv], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    return packages


def box_of(scene: Scene, mode: str, *read: Path) -> Box:
    if mode == "standing" and not abilities().namespaces:
        pytest.skip("no namespaces")
    return box_for_worktree(
        worktree=scene.worktree,
        git_dir=scene.own,
        objects=scene.repository.object_directories(),
        scratch=scene.scratch,
        read=(scene.project / ".venv", *read),
        enforce=mode != "unconfined",
        project=scene.project,
        namespaces=None if mode == "standing" else frozenset(),
    )


def whose(scene: Scene, box: Box, module: str) -> str:
    """Whose module her environment's Python imports in the worktree, from a directory of it."""
    environment = scene.environment | {"PATH": f"{scene.project}/.venv/bin:{os.defpath}"}
    path = own_path(box, scene.project, scene.worktree, environment)
    command = [str(scene.project / ".venv/bin/python"), "-c", TELL, module]
    variables = preceded(environment, path)
    done = scene.run(["/bin/sh", "-c", 'cd tests && exec "$@"', "sh", *command], box, **variables)
    return done.stdout.strip().rpartition("\n")[2]


by_each_user = pytest.mark.parametrize("scene", PEOPLE, indirect=True)
by_this_user = pytest.mark.parametrize("scene", [pytest.param((None, frozenset()), id="by this user")], indirect=True)


@by_each_user
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", [by_a_path, pytest.param(by_the_finder_of_setuptools, marks=pytest.mark.long)])
def test_an_editable_install_imports_the_worktrees_files(
    scene: Scene, way: Callable[[Scene, Path, str], None], layout: str
) -> None:
    for top, owner in ((scene.project, "hers"), (scene.worktree, "the worktree's")):
        write_package(top, layout, owner)
    way(scene, new_environment(scene), layout)
    scene.hand_over()
    for mode in MODES:
        assert whose(scene, box_of(scene, mode), module_of(layout)) == "the worktree's", mode


@by_this_user
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_only_her_checkout_has_is_never_imported_in_its_place(scene: Scene, layout: str) -> None:
    for top in (scene.project, scene.worktree):
        write_package(top, layout, "hers")
    by_a_path(scene, new_environment(scene), layout)
    shutil.rmtree(scene.worktree / LAYOUTS[layout])
    module = module_of(layout)
    assert whose(scene, box_of(scene, "without namespaces"), module).startswith("ModuleNotFoundError")
    for box in (box_of(scene, "unconfined"), box_of(scene, "without namespaces", scene.project)):
        error = given.refused("EDITABLE_ENVIRONMENT", whose, scene, box, module)
        assert str(scene.project / LAYOUTS[layout]) in error.message


@by_this_user
def test_an_environment_whose_python_does_not_say_where_it_imports_from_is_refused(scene: Scene) -> None:
    for top, owner in ((scene.project, "hers"), (scene.worktree, "the worktree's")):
        write_package(top, "src", owner)
    packages = new_environment(scene)
    by_a_path(scene, packages, "src")
    (packages / "zz.pth").write_text("import sys; sys.exit(3)\n")
    error = given.refused("EDITABLE_ENVIRONMENT", whose, scene, box_of(scene, "unconfined"), "lab")
    assert "does not say" in error.message


PROJECTS = {
    "setuptools": '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "lab"\nversion = "1"\n',
    "hatchling": '[build-system]\nrequires = ["hatchling", "editables"]\nbuild-backend = "hatchling.build"\n'
    '[project]\nname = "lab"\nversion = "1"\n[tool.hatch.build]\npackages = ["{package}"]\n',
    "hatchling, exactly": '[build-system]\nrequires = ["hatchling", "editables"]\nbuild-backend = "hatchling.build"\n'
    '[project]\nname = "lab"\nversion = "1"\n[tool.hatch.build]\npackages = ["{package}"]\ndev-mode-exact = true\n',
}


def each_install() -> Iterator[Any]:
    """What pip can install, by turns for each who works in a scene: for pip it is the same."""
    pairs = [pair for pair in product(PROJECTS, LAYOUTS) if pair != ("hatchling, exactly", "namespace")]
    for number, (backend, layout) in enumerate(pairs):
        user = PEOPLE[number % len(PEOPLE)]
        yield pytest.param(backend, layout, *user.values, id=f"{backend}-{layout}-{user.id}")


@pytest.mark.long
@pytest.mark.parametrize(("backend", "layout", "scene"), [*each_install()], indirect=["scene"])
def test_what_pip_installs_for_real_imports_the_worktrees_files(scene: Scene, backend: str, layout: str) -> None:
    for top, owner in ((scene.project, "hers"), (scene.worktree, "the worktree's")):
        write_package(top, layout, owner)
        (top / "pyproject.toml").write_text(PROJECTS[backend].replace("{package}", PACKAGES[layout]))
    packages = new_environment(scene)
    python = str(scene.project / ".venv/bin/python")
    options = ("--quiet", "--disable-pip-version-check", "--editable", str(scene.project))
    done = subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *options], capture_output=True)
    if done.returncode:
        pytest.skip(f"pip cannot install here: {done.stderr.decode()[-300:]}")
    assert list(packages.glob("*.dist-info/direct_url.json"))
    scene.hand_over()
    for mode in MODES:
        assert whose(scene, box_of(scene, mode), module_of(layout)) == "the worktree's", mode
