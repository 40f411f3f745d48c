"""Settings come from the environment and the project's file; a wrong one is a coded error that says where it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.given import refused
from workbench.errors import BadInput, Refused
from workbench.shells.gate import check_address
from workbench.state import user_files
from workbench.state.home import NOWHERE, expanded
from workbench.state.settings import HARMLESS, Settings
from workbench.state.settings_file import LISTS
from workbench.state.workplace_settings import OPENING_NUMBERS
from workbench.system.atomic_file import LARGEST
from workbench.trust import state_directory
from workbench.trust.withheld import set_but_not_trusted, trust, withheld


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has files of the user to itself."""
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path.with_name(f"{tmp_path.name}-config")))


def write(project: Path, text: str) -> Path:
    """The project's settings file, with this content."""
    (project / ".aiswarm").mkdir(exist_ok=True)
    file = project / ".aiswarm" / "settings.toml"
    file.write_text(text)
    return file


def refusal(project: Path) -> str:
    """The message with which the settings of a project are refused."""
    return refused("BAD_SETTINGS", Settings, project=project).message


@pytest.mark.parametrize("name", ["WORKBENCH_PORT", "workbench_port"])
def test_a_wrong_variable_or_argument_is_named_with_the_reason_and_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "99999")
    assert refusal(tmp_path) == (
        "WORKBENCH_PORT: Input should be less than or equal to 65535. Correct or unset the environment variable."
    )
    with pytest.raises(BadInput, match=r"BAD_SETTINGS: port: Input should be less than .* Correct it\."):
        Settings(project=tmp_path, port=99_999)


def test_a_wrong_line_is_named_with_the_reason_and_the_next_step(tmp_path: Path) -> None:
    file = write(tmp_path, '# mine\nmax_retries = 1\n  port= "many"\n')
    assert refusal(tmp_path) == (
        f"{file}, line 3, port: Input should be a valid integer, unable to parse string as an integer. "
        "Correct or remove the line."
    )


def test_every_wrong_setting_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        f"{file}, line 2: there is no setting 'prot' (did you mean port?); "
        f"{file}, line 3: there is no setting 'gates'. "
        "Correct or remove the line; docs/reference.md lists the settings."
    )


def test_a_secret_that_is_wrong_is_not_repeated(tmp_path: Path) -> None:
    own = user_files.settings_path()
    own.parent.mkdir(parents=True)
    own.write_text("access_token = 1234567\n")
    assert str(own) in refusal(tmp_path)
    assert "1234567" not in refusal(tmp_path)


@pytest.mark.long
def test_any_value_of_a_variable_is_accepted_or_refused_with_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unnamed = []
    for name, text in product(Settings.model_fields, ("[", "{}", "\x01", "-1", "9" * 5_000)):
        variable = f"WORKBENCH_{name.upper()}"
        with monkeypatch.context() as patch:
            patch.setenv(variable, text)
            try:
                Settings()
            except BadInput as error:
                is_named = f"{variable}: " in error.message or name == "project"  # a path too long for a file
                unnamed += [] if error.code == "BAD_SETTINGS" and is_named else [(variable, text, error)]
    assert unnamed == []


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ('confinement_write = ["/dev/shm", "~/results"]', "confinement_write", "/dev/shm:~/results"),
        ("confinement_connect = [443, 8080]", "confinement_connect", "443,8080"),
        ('allowed_agents = ["ada", "bob"]', "allowed_agents", "ada,bob"),
        ("definition_roots = []", "definition_roots", ""),
    ],
)
def test_a_setting_that_is_a_list_takes_a_list_of_toml(tmp_path: Path, line: str, name: str, value: str) -> None:
    write(tmp_path, f"{line}\n")
    trust(tmp_path, withheld(tmp_path))
    assert getattr(Settings(project=tmp_path), name) == value
    said = {
        name for name, field in Settings.model_fields.items() if re.search(r"\bas a list\b", str(field.description))
    }
    assert said == {*LISTS}


@pytest.mark.parametrize("line", ['confinement_write = ["a:b"]', "allowed_agents = [true]", 'confinement_read = [""]'])
def test_an_item_that_a_list_cannot_hold_is_refused(tmp_path: Path, line: str) -> None:
    file = write(tmp_path, f"port = 0\n{line}\n")
    trust(tmp_path, withheld(tmp_path))
    assert f"{file}, line 2, {line.split()[0]}: " in refusal(tmp_path)


# Files that may have come with the repository

HOSTILE = """\
host = "0.0.0.0"
allow_remote = true
access_token = "known to the stranger"
confinement = "off"
confinement_read = "/"
confinement_write = "/"
confinement_connect = "22"
integration_requires_approval = false
integration_gates = ["touch /tmp/gate"]
"""


def test_only_harmless_settings_count_from_a_file_that_nobody_trusted(tmp_path: Path) -> None:
    write(tmp_path, HOSTILE + 'lease_seconds = 7\nintegration_fast_forward = true\nallowed_agents = "ada"\n')
    settings, default = Settings(project=tmp_path), Settings(project=tmp_path / "nowhere")
    differing = {name for name in Settings.names() if getattr(settings, name) != getattr(default, name)}
    assert differing == {"lease_seconds", "integration_fast_forward", "allowed_agents"}
    (kept,) = withheld(tmp_path)
    assert set(kept.names) == {line.split(" = ")[0] for line in HOSTILE.splitlines()}
    assert kept.text.splitlines()[0] == 'host = "0.0.0.0"'


def test_a_setting_that_is_set_and_not_trusted_is_told_apart_from_one_that_is_not_set(tmp_path: Path) -> None:
    write(tmp_path, HOSTILE)
    with pytest.raises(Refused, match=r"settings\.toml sets allow_remote and access_token, but you have"):
        check_address(Settings(project=tmp_path, host="0.0.0.0"))
    assert set_but_not_trusted(tmp_path, "person", "port") == ""
    trust(tmp_path, withheld(tmp_path))
    assert set_but_not_trusted(tmp_path, "allow_remote") == ""


def test_every_setting_but_a_number_needs_trust_unless_it_is_listed_as_harmless() -> None:
    values = dict.fromkeys(Settings.names())
    numbers = {name for name in values if isinstance(Settings.model_fields[name].default, int | float)}
    switches = {name for name in values if isinstance(Settings.model_fields[name].default, bool)}
    assert set(Settings.needing_trust(values)) == set(values) - (numbers - switches - OPENING_NUMBERS) - HARMLESS
    assert set(values) > HARMLESS


def test_trusted_settings_count_until_they_change(tmp_path: Path) -> None:
    write(tmp_path, 'confinement = "required"\nport = 1\n')
    trust(tmp_path, withheld(tmp_path))
    assert withheld(tmp_path) == []
    assert Settings(project=tmp_path).confinement == "required"
    write(tmp_path, 'confinement = "required"\nport = 2\n')
    assert (Settings(project=tmp_path).confinement, Settings(project=tmp_path).port) == ("required", 2)
    write(tmp_path, 'confinement = "off"\n')
    assert Settings(project=tmp_path).confinement == "auto"
    assert [one.names for one in withheld(tmp_path)] == [("confinement",)]


def test_trust_in_a_file_does_not_extend_to_the_same_file_of_another_project(tmp_path: Path) -> None:
    for name in ("mine", "copy"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, 'confinement = "off"\n')
    trust(tmp_path / "mine", withheld(tmp_path / "mine"))
    assert Settings(project=tmp_path / "mine").confinement == "off"
    assert Settings(project=tmp_path / "copy").confinement == "auto"


def test_the_users_own_file_may_set_everything_and_a_project_overrides_it(tmp_path: Path) -> None:
    own = user_files.settings_path()
    own.parent.mkdir(parents=True)
    own.write_text('confinement = "required"\nport = 1\nmax_retries = 1\n')
    write(tmp_path, 'confinement = "off"\nport = 2\n')
    settings = Settings(project=tmp_path)
    assert (settings.confinement, settings.port, settings.max_retries) == ("required", 2, 1)


@pytest.mark.parametrize("access", [0o644, 0o660])
def test_a_record_that_others_could_have_written_or_read_is_not_believed(tmp_path: Path, access: int) -> None:
    write(tmp_path, 'confinement = "off"\n')
    trust(tmp_path, withheld(tmp_path))
    user_files.record_path(tmp_path).chmod(access)
    assert Settings(project=tmp_path).confinement == "auto"


def test_a_relative_user_directory_is_ignored_and_an_unwritable_one_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", ".")
    assert user_files.directory() == Path.home() / ".config" / "workbench"
    (tmp_path / "file").touch()
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "file"))
    refused("CONFIG_UNWRITABLE", trust, tmp_path, [])


@pytest.mark.parametrize("home", [None, "~", "."])
def test_a_user_without_a_home_gets_no_settings_and_no_directory_named_tilde(
    repository: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    """Such as in a container that runs with any number as its user."""
    monkeypatch.chdir(repository)
    monkeypatch.delenv("WORKBENCH_CONFIG")
    if home is None:
        monkeypatch.delenv("HOME")
        monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    else:
        monkeypatch.setenv("HOME", home)
    for place in ("~", "."):
        cloned = repository / place / ".config" / "workbench"
        cloned.mkdir(parents=True)
        (cloned / "settings.toml").write_text('max_sweep_runs = 1\ndefinition_roots = "~/agents"\n')
    before = {*repository.rglob("*")}
    assert Settings.load(repository).max_sweep_runs > 1
    assert (
        "the user that you run as has none. Set WORKBENCH_CONFIG"
        in refused("CONFIG_UNWRITABLE", state_directory.create, Settings(project=repository)).message
    )
    assert {*repository.rglob("*")} - before == {repository / ".aiswarm"}
    assert expanded("~/agents") == expanded(Path("~", "agents")) == NOWHERE / "agents"


def test_a_path_in_the_home_of_an_unknown_user_does_not_exist() -> None:
    assert not expanded("~nobody-of-this-name/x").exists()
    assert expanded("~/x") == Path.home() / "x"
    assert expanded("a/~") == Path("a/~")


@pytest.mark.parametrize("kind", ["link", "pipe", "endless"])
def test_a_settings_file_that_is_no_plain_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    file, why = write(tmp_path, ""), {"link": "it is a link", "pipe": "it is not a regular", "endless": "it is larger"}
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link":
        (tmp_path / "other.toml").write_text("port = 1\n")
        file.symlink_to(tmp_path / "other.toml")
    else:
        file.write_bytes(b"#" * (LARGEST + 1))
    assert f"{file} cannot be read: {why[kind]}" in refusal(tmp_path)


# Finding the project


def test_a_project_has_to_be_there_and_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("NOT_A_DIRECTORY", Settings.load, tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    assert Settings.load(tmp_path).project == tmp_path.resolve()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_PROJECT", ".")
    assert Settings().project == Settings.load().project == Settings(project=Path()).project == tmp_path.resolve()


def test_a_directory_that_was_removed_under_the_program_is_a_coded_error(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "from workbench.state.settings import Settings; Settings.load()"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "gone")], capture_output=True, text=True)
    assert "BadInput: NOT_A_DIRECTORY: The current directory" in ran.stderr


@pytest.mark.parametrize("text", ["inf", "1e300", "99999999999"])
def test_a_time_without_an_end_is_a_century(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("WORKBENCH_KEEP_EVENTS_DAYS", text)
    monkeypatch.setenv("WORKBENCH_LEASE_SECONDS", text)
    settings = Settings(project=tmp_path)
    assert settings.keep_events_days * 86_400 == settings.lease_seconds == 3_155_760_000
