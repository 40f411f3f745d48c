"""Settings come from the environment and the project's file; a wrong one is a coded error that says where it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import settings as module
from workbench.errors import BadInput
from workbench.settings import Settings, find_project


def write(project: Path, text: str) -> Path:
    """The project's settings file, with this content."""
    (project / ".aiswarm").mkdir(exist_ok=True)
    file = project / ".aiswarm" / "settings.toml"
    file.write_text(text)
    return file


def refusal(project: Path) -> str:
    """The message with which the settings of a project are refused."""
    with pytest.raises(BadInput) as caught:
        Settings(project=project)
    assert caught.value.code == "BAD_SETTINGS"
    return caught.value.message


@pytest.mark.parametrize("name", ["WORKBENCH_PORT", "workbench_port"])
def test_a_wrong_variable_is_named_with_the_reason_and_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "99999")
    assert refusal(tmp_path) == (
        "WORKBENCH_PORT: Input should be less than or equal to 65535. Correct or unset the environment variable."
    )


def test_a_wrong_line_is_named_with_the_reason_and_the_next_step(tmp_path: Path) -> None:
    file = write(tmp_path, '# mine\nhost = "127.0.0.1"\n  port= "many"\n')
    assert refusal(tmp_path) == (
        f"{file}, line 3, port: Input should be a valid integer, unable to parse string as an integer. "
        "Correct or remove the line."
    )


def test_all_wrong_settings_are_named_at_once_each_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "port = -1\nlease_seconds = 0\n")
    monkeypatch.setenv("WORKBENCH_PORT", "http")
    monkeypatch.setenv("WORKBENCH_MAX_RETRIES", "-1")
    message = refusal(tmp_path)
    assert "WORKBENCH_PORT: Input should be a valid integer" in message
    assert "WORKBENCH_MAX_RETRIES: " in message
    assert "line 2, lease_seconds: Input should be greater than 0" in message
    assert "line 1" not in message


def test_an_unknown_setting_is_named_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 1\nprot = 2\n[gates]\nx = 1\n")
    assert refusal(tmp_path) == (
        f"{file}, line 2: there is no setting 'prot'; {file}, line 3: there is no setting 'gates'. "
        "Correct or remove the line; docs/reference.md lists the settings."
    )


def test_a_secret_that_is_wrong_is_not_repeated(tmp_path: Path) -> None:
    write(tmp_path, "access_token = 1234567\n")
    assert "1234567" not in refusal(tmp_path)


def test_a_wrong_argument_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"BAD_SETTINGS: port: Input should be less than .* Correct it\."):
        Settings(project=tmp_path, port=99_999)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_whatever_a_variable_holds_is_taken_or_refused_with_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("[", "{}", "\x01", "-1", "9" * 5_000):
        monkeypatch.setenv(f"WORKBENCH_{name.upper()}", text)
        try:
            Settings()
        except BadInput as error:
            assert error.code == "BAD_SETTINGS"
            assert f"WORKBENCH_{name.upper()}: " in error.message or name == "project"  # a path too long for a file


# Finding the project


def test_a_project_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="NOT_A_DIRECTORY"):
        Settings.load(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    assert Settings.load(tmp_path).project == tmp_path.resolve()


def test_a_relative_project_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_PROJECT", ".")
    assert Settings().project == Settings.load().project == Settings(project=Path()).project == tmp_path.resolve()


def test_git_that_does_not_answer_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent), prepend=os.pathsep)
    monkeypatch.setattr(module, "GIT_SECONDS", 0.2)
    assert find_project(tmp_path) == tmp_path.resolve()


def test_a_directory_that_was_removed_under_the_program_is_a_coded_error(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "from workbench.settings import Settings; Settings.load()"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "gone")], capture_output=True, text=True)
    assert "BadInput: NOT_A_DIRECTORY: The current directory" in ran.stderr
