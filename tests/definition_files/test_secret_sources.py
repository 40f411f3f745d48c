"""The sources of secrets, and that no error contains a secret."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from tests.given import refused
from workbench.definition_files import secret_sources
from workbench.definition_files.secret_sources import resolve
from workbench.errors import Unavailable, WorkbenchError
from workbench.rules.definitions.secrets.references import parse

SECRET = "hunter2-of-the-person"


def secret(reference: str, project: Path) -> str:
    """The secret of a reference."""
    parsed = parse(reference)
    assert parsed is not None
    return resolve(parsed, project)


def refusal(reference: str, project: Path) -> WorkbenchError:
    """Why a reference does not resolve."""
    error = refused("SECRET_UNRESOLVED", secret, reference, project)
    assert isinstance(error, Unavailable)
    assert SECRET not in "".join(traceback.format_exception(error)) + str(error.as_dict())
    return error


def test_a_secret_is_read_from_a_variable_but_not_from_workbenchs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("THEIR_KEY", "WORKBENCH_ACCESS_TOKEN", "workbench_token"):
        monkeypatch.setenv(name, SECRET)
    assert secret("env://THEIR_KEY", tmp_path) == SECRET
    for name in ("WORKBENCH_ACCESS_TOKEN", "workbench_token"):
        assert "Workbench's own" in refusal(f"env://{name}", tmp_path).message
    error = refusal("env://NOT_SET_HERE", tmp_path)
    assert error.details == {"reference": "env://NOT_SET_HERE"}
    assert error.message.startswith(
        "The secret env://NOT_SET_HERE cannot be read: there is no such variable where it is to be read."
    )


@pytest.mark.parametrize("text", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n"])
def test_a_secret_in_a_file_is_read_without_its_last_line_end(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text(text, newline="")
    for reference, project in (("key", tmp_path), (f"{tmp_path}/key", Path("/")), ("~/key", Path("/"))):
        assert secret(f"file://{reference}", project) == SECRET


def test_a_secret_is_not_read_from_files_of_workbench(tmp_path: Path) -> None:
    (tmp_path / ".aiswarm").mkdir()
    (tmp_path / ".aiswarm" / "server.json").write_text(SECRET)
    (tmp_path / "link").symlink_to(".aiswarm/server.json")
    for path in (".aiswarm/server.json", "x/../.aiswarm/server.json", "link", f"{tmp_path}/.aiswarm/server.json"):
        assert "files of Workbench" in refusal(f"file://{path}", tmp_path).message


def test_a_secret_file_that_is_no_readable_text_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * (secret_sources.LARGEST + 1))
    (tmp_path / "huge").write_bytes(b"x" * (2 << 20))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "zero").write_bytes(b"a\0b")
    (tmp_path / "empty").write_text("\n")
    made = ("pipe", "large", "huge", "binary", "zero", "empty")
    for name in (*made, "missing", ".", "~nobody-of-this-name/key", "a\0b"):
        refusal(f"file://{name}", tmp_path)


@pytest.fixture
def one_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named `op`, the only one in PATH, in place of 1Password's."""
    program = tmp_path / "bin" / "op"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$*" = "read --no-newline op://vault/item/field" ] && echo {SECRET}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def test_a_secret_is_read_from_1password_or_its_refusal_is_quoted(one_password: Path, tmp_path: Path) -> None:
    assert secret("op://vault/item/field", tmp_path) == SECRET
    one_password.write_text("#!/bin/sh\necho 'not \033[1msigned in' >&2\nexit 6\n")
    assert "`op read` ended with 6: not \\x1b[1msigned in" in refusal("op://vault/item/field", tmp_path).message
    one_password.unlink()
    assert "`op` of 1Password is not installed" in refusal("op://vault/item/field", tmp_path).message


def test_a_silent_1password_is_given_up(one_password: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_sources, "PROGRAM_SECONDS", 0.2)
    one_password.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    assert "op signin" in refusal("op://vault/item/field", tmp_path).message


class Drawer(KeyringBackend):
    """A keyring with one entry, and one that is locked."""

    priority = 1  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        """The password, in the interface of the library."""
        if service == "locked":
            raise KeyringLocked(SECRET)
        return {("team/lab", "ada"): SECRET}.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Nothing is written."""


@pytest.fixture
def drawer() -> Iterator[None]:
    """The keyring of this process is a `Drawer`."""
    before = keyring.get_keyring()
    keyring.set_keyring(Drawer())
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("drawer")
def test_a_secret_is_read_from_the_keyring_or_refused_with_a_reason(tmp_path: Path) -> None:
    assert secret("keyring://team/lab/ada", tmp_path) == SECRET
    for reference, reason in (
        ("keyring://team/lab/bob", "the keyring has no such entry"),
        ("keyring://locked/ada", "the keyring refused it (KeyringLocked)"),
        ("keyring://ada", "it must be keyring://service/name"),
    ):
        assert reason in refusal(reference, tmp_path).message
