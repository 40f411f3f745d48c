"""A secret is known by its form or by the name before it, and ordinary texts are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules import access
from workbench.rules.secrets.forms import (
    MASK,
    is_opaque,
    is_secret_under,
    masked_by_form,
    says_secret,
    secrets_in,
    secrets_in_file,
)

SECRET = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
"""What stands in each of the forms, or what they are made of."""


def forms(secret: str) -> tuple[str, ...]:
    """Texts with a secret in each of the forms; letters and digits."""
    return (
        *(
            f"sk-{secret}",
            f"sk-proj-{secret}",
            f"sk-ant-api03-{secret}",
            f"sk_live_{secret}",
            f"xoxb-1234567890-{secret}",
        ),
        *(f"ghp_{secret}", f"github_pat_{secret}", f"glpat-{secret}", f"AKIA{secret.upper()[:16]}", f"AIzaSy{secret}"),
        *(
            f"ya29.{secret}",
            f"hf_{secret}",
            f"npm_{secret}",
            f"pypi-{secret}",
            f"hvs.{secret}",
            f"SG.{secret}.{secret}",
        ),
        *(f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{secret}", f"wba_{secret}", f"wbo_{secret}", f"123456789:AA{secret}"),
        *(
            f"https://hooks.slack.com/services/T00/B00/{secret}",
            f"https://discord.com/api/webhooks/1234567890/{secret}",
        ),
        f"-----BEGIN RSA PRIVATE KEY-----\n{secret}\n{secret}\n-----END RSA PRIVATE KEY-----",
        *(f"postgres://ada:{secret}@db/lab", f"https://{secret}@example.org/x.git", f"redis://:{secret}@cache:6379/0"),
        *(f"Authorization: Bearer {secret}", f"authorization: basic {secret}==", f"curl -H 'X-Api-Key: {secret}' /x"),
        *(f"--token {secret}", f"--api-key={secret}", f"tool -password '{secret}'", f"GET /x?page=1&key={secret}&n=2"),
        *(
            f"OPENAI_API_KEY={secret}",
            f'{{"password": "{secret}"}}',
            f"export DB_PASSWORD={secret}",
            f"clientSecret: {secret}",
        ),
        *(
            f"GITHUB_PAT={secret}",
            f"access_token={secret}",
            f"Set-Cookie: {secret}",
            f"token = '{secret}'",
            f"X-Auth: {secret}",
        ),
        *(f"SENTRY_DSN={secret}", f"DB_PASS={secret}", f"apikey={secret}", f"AWS_SECRET_ACCESS_KEY=wJa/{secret}"),
    )


FORMS = forms(SECRET)
ORDINARY = Path(__file__).with_name("ordinary.txt").read_text("utf-8").splitlines()
"""Lines of programs, sources and logs: of pip, npm, git, pytest, training, servers."""


def test_every_form_is_masked_and_nothing_of_it_stays() -> None:
    assert [text for text in FORMS if SECRET in masked_by_form(text) or MASK not in masked_by_form(text)] == []
    assert [text for text in FORMS if masked_by_form(masked_by_form(text)) != masked_by_form(text)] == []


@given(st.text(), st.text())
def test_every_token_of_workbench_is_masked(before: str, after: str) -> None:
    token = access.new_token("wbo")
    assert token not in masked_by_form(f"{before}{token} {after}")


def test_ordinary_texts_stay() -> None:
    assert len(ORDINARY) >= 200
    assert [(text, masked_by_form(text)) for text in ORDINARY if masked_by_form(text) != text] == []


def test_the_directory_of_a_shell_is_no_secret_for_its_name() -> None:
    assert not is_secret_under("PWD", "/home/ada/lab1")
    assert not is_secret_under("OLDPWD", "/home/ada")
    assert is_secret_under("PWD", "hunter2hunter2")
    assert is_secret_under("pwd", "/hunter2")


def test_a_prefix_before_the_name_of_a_secret_does_not_unmask_it() -> None:
    for text in (f"ERROR: token={SECRET}", f"it is: clientSecret: {SECRET}", f"env: run: export API_KEY={SECRET}"):
        assert SECRET not in masked_by_form(text), text


@pytest.mark.parametrize(
    "coloured",
    [
        *(f"\x1b[32msk-proj-{SECRET}\x1b[0m", f"token=\x1b[1;32m{SECRET}\x1b[0m", f"\x1b[1mtoken\x1b[0m: {SECRET}"),
        *(
            f"API_\x1b[01;31m\x1b[KKEY\x1b[m\x1b[K={SECRET}",
            f"Bearer \x1b[38;5;82m{SECRET}",
            f"10%\r\x1b[2Ktoken={SECRET}",
        ),
    ],
)
def test_colours_hide_no_secret(coloured: str) -> None:
    assert SECRET not in masked_by_form(coloured)


def test_colours_stay_where_nothing_is_secret() -> None:
    assert masked_by_form("\x1b[32mtoken: none\x1b[0m") == "\x1b[32mtoken: none\x1b[0m"


def test_text_around_a_secret_of_a_known_form_stays() -> None:
    assert masked_by_form(f"GET /x?page=1&key={SECRET}&n=2") == f"GET /x?page=1&key={MASK}&n=2"
    assert masked_by_form(f"postgres://ada:{SECRET}@db/lab") == f"postgres://ada:{MASK}@db/lab"
    assert masked_by_form(f'{{"password": "{SECRET}", "n": 1}}') == f'{{"password": "{MASK}", "n": 1}}'


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "githubToken",
            "X-Secret",
            "DB_PASSWORD",
            "PASSPHRASE",
            "Authorization",
            "Cookie",
            "apikey",
        ),
        *("GH_PAT", "SENTRY_DSN", "DB_PASS", "ADMIN_PWD", "X-Auth", "BASIC_AUTH_HEADER", "JWT", "SLACK_WEBHOOK"),
    ],
)
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert says_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "AUTHOR", "COMPASS_URL", "PATTERN", "LEVEL", "NODE_OPTIONS", "KEYBOARD", "MAX_TOKENS", "maxTokens"),
        *("PUBLIC_KEY", "KEY_FILE", "TOKENIZER", "token_count", "monkey", "primaryKey"),
    ],
)
def test_names_of_no_secrets_are_left_alone(name: str) -> None:
    assert not says_secret(name)


@pytest.mark.parametrize("value", [SECRET, f"wJalrXUtnFEMI/{SECRET}", "0f8fad5b-d9cb-469f-a165-70867728950e"])
def test_a_long_value_that_is_nothing_to_read_is_opaque(value: str) -> None:
    assert is_opaque(value)
    assert list(secrets_in(value, "LEVEL")) == [value]


@pytest.mark.parametrize(
    "value",
    [
        *(
            "short1",
            "hello_world_this_is_it",
            "/usr/lib/x86_64/y.so",
            "2026-11-27T10:00:00Z",
            "http://localhost:8080/x/y",
        ),
        *(
            "package.module:function",
            "a sentence of 5 words",
            "data/2026/measured.parquet",
            "~/a1b2c3d4e5f6g7h8",
            "1" * 20,
        ),
    ],
)
def test_readable_text_is_not_opaque(value: str) -> None:
    assert not is_opaque(value)
    assert list(secrets_in(value, "LEVEL")) == []


def test_the_password_in_an_address_is_secret_too() -> None:
    assert list(secrets_in("postgres://ada:hunter2@db/lab")) == ["postgres://ada:hunter2@db/lab", "hunter2"]
    assert list(secrets_in("hunter2", "DB_PASSWORD")) == ["hunter2"]


def test_only_the_tokens_of_a_login_file_are_secret() -> None:
    login = (
        f'{{"claude": {{"accessToken": "{SECRET}", "expiresAt": 1800000000000, "password": "hunter2", "plan": "max"}}}}'
    )
    assert secrets_in_file(login) == {SECRET, "hunter2"}


def test_a_secret_in_escaped_json_is_masked() -> None:
    for text in (*FORMS, f"a\nauth={SECRET}", f"a\n\x1b[32msk-{SECRET}", f"x\r\nBearer {SECRET}"):
        for written in (json.dumps({"said": text}), json.dumps(json.dumps({text: text}))):
            assert SECRET not in masked_by_form(written), written
