"""`workbench keys` keeps keys that providers accept, says what is wrong with others, and shows none."""

from __future__ import annotations

from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from tests.cli.conftest import Type, code
from tests.conftest import Command, Served
from tests.shells.models.upstream import says, upstream
from workbench.definition_files import model_keys
from workbench.rules.models.upstream import PROVIDERS

pytestmark = pytest.mark.anyio

KEY = "sk-ant-the-persons-own-key-0123456789"


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The person's own directory; no key is in her environment."""
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))
    for provider in PROVIDERS.values():
        for name in provider.variables:
            monkeypatch.delenv(name, raising=False)
    return tmp_path / "config"


class Ring(KeyringBackend):
    """A keyring in memory, which can be locked."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def _open(self) -> dict[tuple[str, str], str]:
        if self.is_locked:
            raise KeyringLocked("locked")
        return self.entries

    def get_password(self, service: str, username: str) -> str | None:
        return self._open().get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._open()[service, username]


@pytest.mark.parametrize("typed", ["sk two words", "schlüssel-0123456789", "line-one\nline-two", " ", "a\tb"])
async def test_what_can_be_no_key_is_kept_nowhere(command: Command, config: Path, tmp_path: Path, typed: str) -> None:
    (tmp_path / "key").write_text(typed)
    ran = await command("keys", "add", "anthropic", "--from", f"file://{tmp_path}/key", "--untried")
    assert ran.status != 0
    assert "BAD_KEY" in ran.err or "is empty" in ran.err
    assert typed.strip() not in ran.out + ran.err or not typed.strip()
    assert not (config / "model_keys.json").exists()


async def test_a_key_is_tried_before_it_is_kept(command: Command, config: Path) -> None:
    async with upstream(says({}, "401 Unauthorized")) as model:
        address = ("--base-url", model.url)
        refused = await command("keys", "add", "anthropic", *address, given=f"{KEY}\n")
        assert not (config / "model_keys.json").exists()
        model.script = says({"data": []})
        kept = await command("keys", "add", "anthropic", *address, given=f"{KEY}\n")
    down = await command("keys", "add", "openai", "--base-url", f"{model.url}/v1", given="sk-other\n")
    assert (refused.status != 0, "KEY_REFUSED" in refused.err, "Nothing was kept." in refused.err) == (True, True, True)
    assert (kept.status, "accepts the key" in kept.out) == (0, True)
    assert down.status != 0
    assert "does not answer" in down.out + down.err
    assert model_keys.load().keys() == {"anthropic", "openai"}
    assert KEY not in refused.out + refused.err + kept.out + kept.err


async def test_a_file_that_others_can_read_is_named(served: Served, command: Command, tmp_path: Path) -> None:
    (file := tmp_path / "a key").write_text(f"{KEY}\n")
    file.chmod(0o644)
    hint = f"Others can read {file}: run `chmod 600 '{file}'`."
    async with upstream(says({"data": []})) as model:
        added = await command("keys", "add", "anthropic", "--from", f"file://{file}", "--base-url", model.url)
        listed = await served.workbench.call("check_model_keys")
        file.chmod(0o600)
        corrected = await served.workbench.call("list_model_keys")
    assert hint in " ".join(added.out.split())
    assert hint in listed["keys"][0]["detail"]
    assert "Others" not in corrected["keys"][0]["detail"]


async def test_a_keyring_that_is_locked_or_absent(served: Served, command: Command, config: Path) -> None:
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    try:
        await command("keys", "add", "anthropic", "--untried", given=f"{KEY}\n")
        assert ring.entries == {("workbench", "anthropic"): KEY}
        ring.is_locked = True
        [locked, *_] = (await served.workbench.call("list_model_keys"))["keys"]
        other = await command("keys", "add", "openai", "--untried", given="sk-other\n")
        removed = await command("keys", "remove", "anthropic")
    finally:
        keyring.set_keyring(before)
    assert (locked["state"], "KeyringLocked" in locked["detail"]) == ("unreadable", True)
    assert (other.status, removed.status) == (0, 0)
    assert (config / "keys" / "openai").read_text() == "sk-other"
    assert (config / "keys" / "openai").stat().st_mode & 0o077 == 0
    assert model_keys.load().keys() == {"openai"}


async def test_one_key_that_cannot_be_read_hides_no_other(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " ")  # set, but empty
    monkeypatch.setenv("GEMINI_API_KEY", "two words")
    model_keys.keep_reference(PROVIDERS["openai"], "env://GONE")
    async with upstream(says({"data": []})) as model:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url.replace("://", "://me:secret@"))
        checked = (await served.workbench.call("check_model_keys"))["keys"]
    assert [key["state"] for key in checked] == ["accepted", "unreadable", "unreadable"]
    assert "no such variable" in checked[1]["detail"]
    assert "is no key of Google Gemini" in checked[2]["detail"]
    assert "secret" not in str(checked[0])


def test_a_key_is_sent_without_encryption_only_to_this_machine_or_if_the_person_agrees(
    run: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    add = ("keys", "add", "anthropic", "--from", "env://MY_KEY", "--untried")
    exposed = ("--base-url", "http://models.example:8000")
    assert code(run(*add, *exposed)) == "NOT_CONFIRMED"
    assert code(run(*add, "--base-url", "ftp://models.example")) == "BAD_URL"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://models.example")
    assert code(run(*add)) == "NOT_CONFIRMED"
    assert model_keys.load() == {}
    for more in (
        ("--base-url", "http://127.0.0.1:8000"),
        ("--base-url", "https://models.example"),
        (*exposed, "--yes"),
    ):
        assert run(*add, *more).status == 0
        assert model_keys.load()["anthropic"].base in more
