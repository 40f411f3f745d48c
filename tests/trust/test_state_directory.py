"""The state directory: created by those commands that create a project, and used only if it was created here."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import git, typed
from tests.given import refused
from workbench.app import Workbench
from workbench.errors import Refused
from workbench.state import user_files
from workbench.state.settings import Settings
from workbench.trust import state_directory
from workbench.trust.withheld import Privileged, trust

Type = Callable[..., tuple[int, str]]


@pytest.fixture
def run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """`run("tasks")`: a command in a repository that is no project yet; its status and what it wrote."""
    monkeypatch.chdir(repository)

    def said(*words: str) -> tuple[int, str]:
        ran = typed(*words)
        return ran.status, ran.out + ran.err

    return said


def open_once(project: Path) -> None:
    """Open a project, as its servers do, and close it."""

    async def opened() -> None:
        async with Workbench.open(Settings(project=project)):
            pass

    asyncio.run(opened())


def refusal(project: Path) -> Refused:
    with pytest.raises(Refused) as caught:
        state_directory.check(project)
    return caught.value


def test_an_interrupted_creation_is_repeated_and_its_directory_made_private(repository: Path) -> None:
    home = repository / ".aiswarm"
    (home / "personas").mkdir(parents=True)
    for name in (".origin.1f.tmp", "..gitignore.1f.tmp", ".gitignore"):
        (home / name).touch()
    home.chmod(0o755)
    open_once(repository)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    open_once(repository)


def test_processes_that_create_a_project_at_once_all_succeed(tmp_path: Path) -> None:
    for number in range(10):
        settings = Settings(project=tmp_path / str(number))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(state_directory.create, [settings] * 8))


def test_trust_given_during_the_creation_of_a_project_is_recorded(tmp_path: Path) -> None:
    for number in range(5):
        settings = Settings(project=tmp_path / str(number))
        files = [Privileged(f"profiles/{name}.yaml", (), "", name) for name in "abcdefg"]
        with ThreadPoolExecutor(8) as pool:
            created = pool.submit(state_directory.create, settings)
            list(pool.map(lambda file: trust(settings.project, [file]), files))  # noqa: B023
            created.result()
        assert user_files.load_record(settings.project).trusted == {file.file: file.digest for file in files}
        assert state_directory.unknown(settings.project) == []


LOOKERS = (
    *("status", "agents", "approvals", "tasks", "worktrees", "events", "history ada", "doctor", "profiles", "ps"),
    *("rules", "allowlist", "personas", "projects", "sessions", "teams", "contexts", "performance", "graph", "trust"),
    *("connect", "export tasks", "export-plan p", "migrate --status", "mcp", "worker --persona implementer"),
    *("approve --all", "plan plan.yaml --dry-run", "call whoami", "worktrees prune", "worktrees conflicts"),
)


@pytest.mark.long
def test_commands_that_read_create_nothing(run: Type, repository: Path) -> None:
    (repository / "plan.yaml").write_text("plan: p\ntasks:\n  - {name: t, title: T, persona: implementer}\n")
    records = set(user_files.directory().rglob("*"))
    for words in LOOKERS:
        run(*words.split())
        assert {path.name for path in repository.iterdir()} == {".git", "README.md", "plan.yaml"}, words
    assert run("sql", "SELECT count(*) AS n FROM tasks")[1].split() == ["n", "0"]
    assert run("status")[0] == run("agents")[0] == run("doctor")[0] == 0
    assert not (repository / ".aiswarm").exists()
    assert set(user_files.directory().rglob("*")) == records


@pytest.mark.parametrize(
    "words", ["personas save README.md", "projects add p", "worktrees create lab", "allowlist add x", "migrate"]
)
def test_commands_that_write_are_refused_without_a_project(run: Type, repository: Path, words: str) -> None:
    status, text = run(*words.split())
    assert (status, text) == (1, f"NO_PROJECT: {repository} is no project yet. Run `workbench init` there.\n")
    assert not (repository / ".aiswarm").exists()


@pytest.mark.parametrize("words", ["init --bare", "plan plan.yaml"])
def test_a_project_is_created_for_its_user_alone(run: Type, repository: Path, words: str) -> None:
    (repository / "plan.yaml").write_text("plan: p\ntasks:\n  - {name: t, title: T, persona: implementer}\n")
    before = os.umask(0)
    try:
        assert run(*words.split())[0] == 0
    finally:
        os.umask(before)
    home = repository / ".aiswarm"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "origin").stat().st_mode) == 0o600
    assert run("projects", "add", "p")[0] == 0
    assert git("status", "--porcelain", "--", ".aiswarm", cwd=repository) == ""


def test_state_that_was_not_created_here_is_refused_with_its_names_until_it_is_trusted(
    run: Type, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_once(repository)
    moved = repository.rename(repository.with_name("moved"))
    monkeypatch.chdir(moved)
    error = refusal(moved)
    assert error.code == "STATE_NOT_TRUSTED"
    assert ".aiswarm/coordination.db" in error.details["files"]
    assert set(error.details["files"]) <= {f".aiswarm/{path.name}" for path in (moved / ".aiswarm").iterdir()}
    refused("STATE_NOT_TRUSTED", open_once, moved)
    status, text = run("trust")
    assert status == 0
    assert "    .aiswarm/coordination.db\n" in text
    assert refusal(moved).code == "STATE_NOT_TRUSTED"
    assert run("trust", "--yes")[0] == 0
    state_directory.check(moved)
    assert run("agents")[0] == 0


@pytest.mark.parametrize("name", ["server.json", "coordination.db", "allowlist.txt", ".gitignore", "worktrees/lab/x"])
def test_state_that_git_tracks_is_refused_even_in_a_project_that_was_created_here(repository: Path, name: str) -> None:
    state_directory.create(Settings(project=repository))
    file = repository / ".aiswarm" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    git("add", "--force", f".aiswarm/{name}", cwd=repository)
    error = refusal(repository)
    assert (error.code, error.details["files"]) == ("STATE_TRACKED", [f".aiswarm/{name}"])
    git("rm", "-q", "--cached", f".aiswarm/{name}", cwd=repository)
    state_directory.check(repository)


@pytest.mark.parametrize("form", [("--index-version", "4"), ("--split-index",), ("--refresh",)])
def test_state_is_found_in_an_index_that_does_not_write_its_path_out(repository: Path, form: tuple[str, ...]) -> None:
    state_directory.create(Settings(project=repository))
    state = ".AISwarm" if form == ("--refresh",) else ".aiswarm"
    for name in (".aiswarl", f"{state}/server.json"):  # of two paths, version 4 writes the second after what they share
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text("x")
        git("add", "--force", name, cwd=repository)
    git("update-index", *form, cwd=repository)
    assert b".aiswarm" not in (repository / ".git" / "index").read_bytes()
    error = refusal(repository)
    assert (error.code, error.details["files"]) == ("STATE_TRACKED", [f"{state}/server.json"])


def test_tracked_personas_definitions_profiles_and_settings_are_accepted(repository: Path) -> None:
    for name in ("personas/a.md", "agents/a/agent.yaml", "profiles/a.yaml", "settings.toml"):
        file = repository / ".aiswarm" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    git("add", "--force", ".aiswarm", cwd=repository)
    state_directory.create(Settings(project=repository))
    state_directory.check(repository)


@pytest.mark.parametrize("is_tracked", [True, False])
@pytest.mark.parametrize("name", ["personas/poet.md", "personas", "profiles", "settings.toml"])
def test_a_link_in_place_of_a_file_is_refused(repository: Path, tmp_path: Path, name: str, is_tracked: bool) -> None:
    link = repository / ".aiswarm" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "secret")
    if is_tracked:
        git("add", "--force", ".aiswarm", cwd=repository)
    error = refusal(repository)
    assert error.code == ("STATE_TRACKED" if is_tracked else "STATE_NOT_TRUSTED")
    assert error.details["files"] == [f".aiswarm/{name}"]


def test_a_linked_state_directory_is_refused(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repository / ".aiswarm").symlink_to(tmp_path / "elsewhere")
    assert refusal(repository).code == "STATE_NOT_YOURS"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("words", ["status", "doctor", "init", "tasks", "trust"])
def test_whoever_works_in_a_colleagues_project_is_told_whose_it_is_before_anything_of_it_is_read(
    run: Type, repository: Path, words: str
) -> None:
    home = repository / ".aiswarm"
    home.mkdir()
    (home / "settings.toml").write_text("this would be BAD_SETTINGS")
    os.chown(home, 65_534, 65_534)
    status, text = run(*words.split())
    assert (status, text.startswith(f"STATE_NOT_YOURS: {home} belongs to another user (nobody)")) == (1, True), text
    assert f"`git clone {repository}`" in text


def test_state_whose_secret_others_may_read_is_named_as_such_and_trust_makes_it_private(
    run: Type, repository: Path
) -> None:
    open_once(repository)
    home = repository / ".aiswarm"
    for path in (home, *home.iterdir()):
        path.chmod(path.stat().st_mode | 0o050)
    assert f"others may read {home / 'origin'} (mode 650)" in refusal(repository).message
    assert run("trust", "--yes")[0] == 0
    state_directory.check(repository)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_project_that_two_machines_see_at_two_paths_is_trusted_at_both(repository: Path) -> None:
    """A login node and a hub see one home directory at different paths, of which each knows only its own."""
    open_once(repository)
    elsewhere = repository.rename(repository.with_name("elsewhere"))
    state_directory.adopt(elsewhere)
    elsewhere.rename(repository)
    state_directory.check(repository)
    repository.rename(elsewhere)
    state_directory.check(elsewhere)


def test_the_secret_of_another_project_does_not_trust_the_state(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for project in (repository, tmp_path / "mine"):
        state_directory.create(Settings(project=project))
    secret = (tmp_path / "mine" / ".aiswarm" / "origin").read_text()
    (repository / ".aiswarm" / "origin").write_text(secret)
    (repository / ".aiswarm" / "coordination.db").write_text("")
    assert refusal(repository).code == "STATE_NOT_TRUSTED"


def test_a_project_without_a_record_is_not_made(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "file"))
    refused("CONFIG_UNWRITABLE", state_directory.create, Settings(project=repository))
    assert list((repository / ".aiswarm").iterdir()) == []


def test_an_index_that_cannot_be_read_is_not_taken_for_one_without_state(repository: Path) -> None:
    state_directory.create(Settings(project=repository))
    index = repository / ".git" / "index"
    for damaged in (b"DIRC damaged", index.read_bytes()[:20]):
        index.write_bytes(damaged)
        refused("GIT_FAILED", state_directory.check, repository)
