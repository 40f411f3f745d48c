"""A researcher's repository in the box: what runs in her terminal runs in a worktree, and what is off is named."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Served, git
from tests.services.processes.running import serving, spawn
from tests.users import NOBODY, python_of
from tests.worker.working import directory_of, ran
from workbench.confinement import abilities
from workbench.state.settings import Settings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not abilities().namespaces, reason="the system allows no mounts"),
]

ROWS = 50_000_000
KEYS: dict[str, Any] = {"read": ["data"], "environment": ".venv", "include": [".env"]}
WORKPLACE = {
    "data": "python -c \"assert open('data/rows.bin', 'rb').read().endswith(b'end\\n')\"",
    "include": 'test "$(cat .env)" = LAB=1',
    "submodule": "cat lib/constants.txt",
    "environment": "python -c 'import her_library; assert her_library.ANSWER == 42'",
}
SURROUNDINGS = {
    "multiprocessing": "python -m pytest -q -p no:cacheprovider tests/test_pool.py",
    "server": "python -m pytest -q -p no:cacheprovider tests/test_http.py",
    "notebook": "python -m papermill notes.ipynb out.ipynb",
}
POOL = """\
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Lock


def test_processes_share_work():
    with Lock(), ProcessPoolExecutor(2) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
"""
HTTP = """\
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from urllib.request import urlopen


def test_a_page_is_served():
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert urlopen(f"http://127.0.0.1:{server.server_port}/README.md").status == 200
        server.shutdown()
"""
CELL = "import her_library, os; assert os.path.getsize('data/rows.bin') == 50_000_000; print(her_library.ANSWER)"


@pytest.fixture
def tmp_path(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of hers is in /dev/shm, of which each box has its own."""
    monkeypatch.setenv("WORKBENCH_CONFIG", str(on_disk / "config"))
    monkeypatch.setenv("TMPDIR", "/tmp")
    return on_disk


@pytest.fixture
def project(repository: Path) -> Path:
    """Her repository: ignored data, an environment with a library, a submodule beside it, tests and a notebook."""
    constants = repository.parent / "constants"
    constants.mkdir()
    git("init", "-q", "-b", "main", cwd=constants)
    (constants / "constants.txt").write_text("c = 299792458\n")
    git("add", ".", cwd=constants)
    git("commit", "-qm", "Constants", cwd=constants)
    git("remote", "add", "origin", str(repository.parent / "project.git"), cwd=repository)
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../constants", "lib", cwd=repository)
    (repository / ".gitignore").write_text("/data/\n/.venv/\n.env\n")
    tests = repository / "tests"
    tests.mkdir()
    (tests / "test_pool.py").write_text(POOL)
    (tests / "test_http.py").write_text(HTTP)
    (repository / "notes.ipynb").write_text(notebook(CELL))
    git("add", "-A", cwd=repository)
    git("commit", "-qm", "Her work", cwd=repository)
    (repository / "data").mkdir()
    with (repository / "data" / "rows.bin").open("wb") as rows:
        rows.seek(ROWS - 4)
        rows.write(b"end\n")
    (repository / ".env").write_text("LAB=1\n")
    venv.create(repository / ".venv", symlinks=True)
    (packages,) = repository.glob(".venv/lib/python3*/site-packages")
    (packages / "her_library.py").write_text("ANSWER = 42\n")
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return repository


def notebook(source: str) -> str:
    """A notebook with one cell, for Python."""
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


@asynccontextmanager
async def morning(settings: Settings, **keys: Any) -> AsyncIterator[Served]:
    """Her project, served, with a worktree and an agent in it."""
    async with serving(Settings(**{**settings.model_dump(exclude_unset=True), **keys})) as served:
        await served.workbench.call("create_worktree", name="lab")
        await spawn(served, assigned_worktree="lab")
        yield served


async def errors(served: Served, tasks: dict[str, str]) -> dict[str, str]:
    """The errors of the tasks that failed, by their names."""
    ended = {name: await ran(served, run, target_worktree="lab", max_retries=0) for name, run in tasks.items()}
    return {name: task["error_message"] for name, task in ended.items() if task["status"] != "completed"}


async def test_what_runs_in_her_terminal_runs_in_a_worktree(settings: Settings, project: Path) -> None:
    async with morning(settings, **KEYS) as served:
        assert await errors(served, WORKPLACE | SURROUNDINGS) == {}
        (output,) = json.loads((directory_of(served) / "out.ipynb").read_text())["cells"][0]["outputs"]
        assert output["text"] == ["42\n"]


async def test_without_a_key_of_the_workplace_the_error_names_the_key(settings: Settings, project: Path) -> None:
    async with morning(settings, submodules=False) as served:
        told = await errors(served, WORKPLACE)
    ignored = "Worktrees do not have what git ignores: the project has {}. The keys read and include of the workplace"
    assert {
        name: sentence in told.get(name, "")
        for name, sentence in (
            ("data", ignored.format("data")),
            ("include", ignored.format(".env")),
            ("submodule", "does not have the files of submodules: lib (it was made with submodules = false"),
            ("environment", "what was not found in .venv: the key environment of the workplace brings"),
        )
    } == dict.fromkeys(WORKPLACE, True), told


async def test_without_surroundings_of_its_own_the_error_names_the_setting(settings: Settings, project: Path) -> None:
    async with morning(settings, confinement_namespaces="off", **KEYS) as served:
        told = await errors(served, SURROUNDINGS)
    opened = 'the setting confinement_namespaces, with "auto", gives each command its own.'
    ports = f"It cannot listen on a port, by its rules for the network: {opened}"
    locks = f"It cannot use /dev/shm, which locks between processes need, by its rules for files: {opened}"
    assert {
        name: sentence in told.get(name, "")
        for name, sentence in (
            ("multiprocessing", locks),
            ("server", ports),
            ("notebook", ports),
        )
    } == dict.fromkeys(SURROUNDINGS, True), told


@pytest.mark.timeout(360)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
async def test_an_ordinary_user_has_the_same_morning(place: Path) -> None:
    python, root = python_of(NOBODY), Path(__file__).parents[2]
    os.chown(place, NOBODY, NOBODY)
    options = ("-q", "-p", "no:cacheprovider", "-m", "long", "-c", root / "pyproject.toml", "--basetemp", place / "t")
    done = subprocess.run(
        [python.executable, "-m", "pytest", __file__, *options],
        cwd=root,
        env={"PATH": os.environ["PATH"], "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1", **python.environment},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
    assert "3 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
