"""Keys of model providers are kept, but not sent to where others can read them without asking."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Type, code
from workbench.definition_files import model_keys


@pytest.fixture(autouse=True)
def _own_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("MY_KEY", "sk-ant-0123456789abcdef")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


def test_a_key_is_sent_without_encryption_only_to_this_machine_or_if_the_person_agrees(
    run: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
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
