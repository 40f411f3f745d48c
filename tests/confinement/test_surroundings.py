"""The surroundings of a command in a box: its variables, and the paths that every box may read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from workbench import process
from workbench.confinement import Box, box_for_worktree, surroundings


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A box whose directories need not exist."""
    return Box(write=(tmp_path / "worktree", tmp_path / "repository"), read=(), scratch=tmp_path / "scratch")


PLAIN = {"LANG": "de_DE.UTF-8", "TERM": "xterm", "USER": "me", "TZ": "UTC", "OMP_NUM_THREADS": "2", "LC_ALL": "C"}
NEEDED = {
    "SSL_CERT_FILE": "/etc/lab.pem",
    "REQUESTS_CA_BUNDLE": "/etc/lab.pem",
    "NODE_EXTRA_CA_CERTS": "/etc/lab.pem",
    "https_proxy": "http://proxy:8080",
    "NO_PROXY": "localhost,.lab",
    "CUDA_VISIBLE_DEVICES": "0,1",
}
OTHERS = ("MONKEY", "JWT", "AUTH_HEADER", "SLACK_WEBHOOK", "DB_PW", "SERVICE", "OPENAI_KEY2", "MPLBACKEND", "CLICOLOR")
STEERING = (
    *("GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"),
    *("PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "npm_config_userconfig", "PERL5OPT", "RUBYOPT"),
    *("BASH_ENV", "ENV", "PAGER", "EDITOR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "PIP_INDEX_URL"),
    *("JPY_PARENT_PID", "WORKBENCH_PROJECT"),
)
SECRETS = (
    *("WORKBENCH_TOKEN", "WORKBENCH_ACCESS_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "OPENAI_API_KEY"),
    *("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AZURE_CLIENT_SECRET"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO"),
    *("DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "DISPLAY", "MY_PASSWORD", "db_password", "MY_PASSPHRASE"),
    *("SIGNING_KEY", "NPM_AUTH", "SENTRY_DSN", "PGPASSWORD", "PGPASSFILE", "SESSION_COOKIE", "PRIVATE_PEM"),
    *("JUPYTER_TOKEN", "KRB5CCNAME", "GITHUB_PAT", "SUDO_COMMAND"),
)


def test_plain_variables_are_kept_and_home_and_temporary_files_lie_in_the_scratch_directory(box: Box) -> None:
    kept = PLAIN | {process.MARK: "mark"}
    found = box.environment(kept | {"HOME": "/home/me", "TMPDIR": "/tmp"})
    assert (kept | {"HOME": str(box.scratch), "TMPDIR": str(box.scratch)}).items() <= found.items()


def test_a_dangerous_or_revealing_variable_is_removed(box: Box) -> None:
    assert [name for name in (*STEERING, *SECRETS) if box.environment({name: "theirs"}).get(name) == "theirs"] == []


def test_variables_of_network_and_devices_are_kept_unless_they_hold_credentials(box: Box) -> None:
    assert NEEDED.items() <= box.environment(NEEDED).items()
    for proxy in (
        "http://me:secret@proxy:8080",
        "http://token@proxy:8080",
        "me:secret@proxy:8080",
        "http://:pass@proxy",
    ):
        assert "https_proxy" not in box.environment({"https_proxy": proxy}), proxy


def test_a_command_gets_no_variable_that_is_in_no_list_and_a_tool_server_only_a_few(box: Box) -> None:
    everything = dict.fromkeys((*PLAIN, *NEEDED, *STEERING, *SECRETS, *OTHERS), "theirs")
    found = {name for name, value in box.environment(everything).items() if value == "theirs"}
    assert found == {*PLAIN, *NEEDED}
    of_server = box.environment(everything, surroundings.TOOL_SERVER)
    assert {name for name, value in of_server.items() if value == "theirs"} == {"LANG", "TZ"}
    assert of_server["HOME"] == str(box.scratch)


def test_the_path_begins_with_this_python_and_names_what_the_box_may_read(box: Box, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    base = {"PATH": f"{tools}:/usr/bin::relative:{tmp_path}/shims:/usr/bin"}
    own = str(Path(sys.executable).parent)
    assert box.environment(base)["PATH"] == f"{own}:/usr/bin:/bin"
    assert replace(box, read=(tools,)).environment(base)["PATH"] == f"{own}:{tools}:/usr/bin:/bin"
    free = replace(box, enforce=False).environment(base)["PATH"]
    assert free == f"{own}:{tools}:/usr/bin:{tmp_path}/shims:/bin"


# What every box may read

Within = Callable[[Path], bool]


@pytest.fixture
def readable(tmp_path: Path) -> Within:
    """Whether a box for a project in a temporary directory may read a path."""

    def within(path: Path) -> bool:
        places = surroundings.shared([tmp_path / "worktree"])
        return any(path.resolve().is_relative_to(place) for place in places)

    return within


def test_nothing_private_is_read_of_the_system_but_programs_and_what_they_need(readable: Within) -> None:
    private = ("/", "/etc", "/etc/shadow", "/etc/ssl/private", "/proc", "/proc/1", "/dev", "/run", "/var", "/tmp")
    assert [path for path in (*private, "/sys", Path.home()) if readable(Path(path))] == []
    needed = ("/usr/bin/env", "/bin/sh", "/etc/passwd", sys.executable, os.__file__, pytest.__file__)
    assert [path for path in needed if not readable(Path(path))] == []


def test_workbench_is_read_and_no_more_of_where_it_lies(readable: Within) -> None:
    assert readable(surroundings.PACKAGE / "client")
    if surroundings.package():
        assert not readable(surroundings.PACKAGE.parent)
        assert not readable(surroundings.PACKAGE.parent / "tests")


def test_a_project_among_the_systems_directories_is_not_read_with_them() -> None:
    places = surroundings.shared([Path("/usr/src/app/.aiswarm/worktrees/a")])
    assert not any(Path("/usr/src").is_relative_to(place) for place in places)
    assert Path("/usr/bin") in places
    assert Path("/usr/lib") in places


def test_a_python_whose_prefix_is_a_home_is_read_by_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = Path(sys.prefix).resolve()
    monkeypatch.setenv("HOME", str(prefix))
    places = surroundings.shared([])
    assert prefix not in places
    assert prefix / "lib" in places


def test_paths_in_a_box_are_absolute_and_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = Path()
    box = box_for_worktree(worktree=here, git_dir=here, objects=[here, here], scratch=here)
    assert (box.write, box.read, box.scratch) == ((tmp_path,), (tmp_path,), tmp_path)
