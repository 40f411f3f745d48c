"""Which values are secrets, and that they are masked."""

from __future__ import annotations

import pytest

from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets import MASK, masked, parse, redacted, redacted_data, sounds_secret, written_out


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "githubToken", "X-Secret", "DB_PASSWORD", "PASSPHRASE", "Authorization", "Cookie"),
        *("GH_PAT", "SENTRY_DSN", "DB_PASS", "ADMIN_PWD", "X-Auth", "BASIC_AUTH_HEADER"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert sounds_secret(name)


@pytest.mark.parametrize("name", ["PATH", "AUTHOR", "COMPASS_URL", "PATTERN", "LEVEL", "NODE_OPTIONS"])
def test_names_of_no_secrets(name: str) -> None:
    assert not sounds_secret(name)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("postgres://ada:hunter2@db/lab", MASK),
        ("postgres://db/lab", "postgres://db/lab"),
        ("env://DATABASE", "env://DATABASE"),
    ],
)
def test_an_address_with_a_password_is_masked_whatever_its_name(value: str, shown: str) -> None:
    server = {"command": "server", "env": {"DATABASE": value}}
    made = Definition.model_validate({"metadata": {"id": "a", "name": "A"}, "mcpServers": {"db": server}})
    assert masked(made).model_dump()["mcpServers"]["db"]["env"] == {"DATABASE": shown}
    assert list(written_out(made)) == ([] if shown == value else ["mcpServers.db.DATABASE"])


@pytest.mark.parametrize("text", ["env://A", "file:///etc/key", "op://vault/item/field", "keyring://service/name"])
def test_references(text: str) -> None:
    assert str(parse(text)) == text


def test_a_reference_after_the_scheme_of_a_header() -> None:
    found = parse("Bearer env://A")
    assert (str(found), found and found.scheme) == ("env://A", "Bearer ")


@pytest.mark.parametrize(
    "text", ["", "env://", "env:// A", "http://example.org", "Bearer x", "Bearer  env://A", "x env://A", " env://A"]
)
def test_literals(text: str) -> None:
    assert parse(text) is None


def test_of_a_secret_with_several_lines_each_is_masked() -> None:
    key = "-----BEGIN KEY-----\nMIIabcdefghij\n-----END KEY-----"
    assert redacted(f"it is {key}!", [key]) == f"it is {MASK}!"
    assert redacted("MIIabcdefghij", [key]) == MASK


def test_secrets_are_masked_in_all_texts_of_data_and_what_is_no_text_stays() -> None:
    data = {"key-abcd": ["key-abcd", {"deep": ("x key-abcd")}, 7, None, True], "abc": "abc", "n": 1.5}
    masked_data = {MASK: [MASK, {"deep": f"x {MASK}"}, 7, None, True], "abc": "abc", "n": 1.5}
    assert redacted_data(data, ["key-abcd", "abc"]) == masked_data
    assert redacted_data("the word abcd", ["abcd"]) == f"the word {MASK}"
    assert redacted("abcdefgh", ["abcd", "abcdefgh"]) == MASK
