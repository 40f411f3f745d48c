"""A secret is known by its form or by the name before it, and ordinary texts are left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules import access
from workbench.rules.secrets.forms import MASK, is_opaque, masked_by_form, says_secret, secrets_in, secrets_in_file

SECRET = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
"""What stands in each of the forms, or what they are made of."""
FORMS = (
    *(f"sk-{SECRET}", f"sk-proj-{SECRET}", f"sk-ant-api03-{SECRET}", f"sk_live_{SECRET}", f"xoxb-1234567890-{SECRET}"),
    *(f"ghp_{SECRET}", f"github_pat_{SECRET}", f"glpat-{SECRET}", f"AKIA{SECRET.upper()[:16]}", f"AIzaSy{SECRET}"),
    *(f"ya29.{SECRET}", f"hf_{SECRET}", f"npm_{SECRET}", f"pypi-{SECRET}", f"hvs.{SECRET}", f"SG.{SECRET}.{SECRET}"),
    *(f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{SECRET}", f"wba_{SECRET}", f"wbo_{SECRET}", f"123456789:AA{SECRET}"),
    *(f"https://hooks.slack.com/services/T00/B00/{SECRET}", f"https://discord.com/api/webhooks/1234567890/{SECRET}"),
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    *(f"postgres://ada:{SECRET}@db/lab", f"https://{SECRET}@example.org/x.git", f"redis://:{SECRET}@cache:6379/0"),
    *(f"Authorization: Bearer {SECRET}", f"authorization: basic {SECRET}==", f"curl -H 'X-Api-Key: {SECRET}' /x"),
    *(f"--token {SECRET}", f"--api-key={SECRET}", f"tool -password '{SECRET}'", f"GET /x?page=1&key={SECRET}&n=2"),
    *(
        f"OPENAI_API_KEY={SECRET}",
        f'{{"password": "{SECRET}"}}',
        f"export DB_PASSWORD={SECRET}",
        f"clientSecret: {SECRET}",
    ),
    *(
        f"GITHUB_PAT={SECRET}",
        f"access_token={SECRET}",
        f"Set-Cookie: {SECRET}",
        f"token = '{SECRET}'",
        f"X-Auth: {SECRET}",
    ),
    *(f"SENTRY_DSN={SECRET}", f"DB_PASS={SECRET}", f"apikey={SECRET}", f"AWS_SECRET_ACCESS_KEY=wJa/{SECRET}"),
)
ORDINARY = """
max_tokens=4096
the token is invalid
MAX_TOKENS: 100000
KEYBOARD=de
KEYBOARD_LAYOUT=nodeadkeys1
token: 12
input_tokens: 12345678
the key of the row is primary1
password: required
--token TOKEN   the token to use
--token string
keyword=value12
Author: Ada Lovelace 1815
key=value
sort_key=created_at
primary_key=True
commit 4f2a9c0e8b1d3a5f7c9e1b3d5f7a9c0e8b1d3a5f
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
https://example.org/a?page=2&sort=name
http://127.0.0.1:8765/mcp
git@github.com:ada/x.git
ask-me-anything-about-this-thing
risk-assessment-of-the-model
tests/test_tokens.py::test_the_token_of_a_process PASSED
bypass=true12
passed 12 tests in 3.4s
Bearer token required
basic authentication failed
secret: env://OPENAI
api_key=${OPENAI_API_KEY}
api_key: sk-...
password=<password>
password: {password}
tokenizer=bert-base-uncased
The secret of success is 99percent
monkey=banana123
user@example.org
def token(self) -> str:
token_hash=token_hash(token)
keys=[1,2,3,4,5,6]
dict_keys(['a1','b2'])
PWD=/home/ada/lab1
key_file=/home/ada/.ssh/id_ed25519
Step 12/400 - loss: 0.0123 - accuracy: 0.9876
3 keys, 12 tokens, 1 secret
""".strip().splitlines()


def test_every_form_is_masked_and_nothing_of_it_stays() -> None:
    assert [text for text in FORMS if SECRET in masked_by_form(text) or MASK not in masked_by_form(text)] == []
    assert [text for text in FORMS if masked_by_form(masked_by_form(text)) != masked_by_form(text)] == []


@given(st.text(), st.text())
def test_no_token_of_ours_survives(before: str, after: str) -> None:
    token = access.new_token("wbo")
    assert token not in masked_by_form(f"{before}{token} {after}")


def test_ordinary_texts_stay() -> None:
    assert [(text, masked_by_form(text)) for text in ORDINARY if masked_by_form(text) != text] == []


def test_what_stands_around_a_secret_stays() -> None:
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
def test_names_of_secrets(name: str) -> None:
    assert says_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "AUTHOR", "COMPASS_URL", "PATTERN", "LEVEL", "NODE_OPTIONS", "KEYBOARD", "MAX_TOKENS", "maxTokens"),
        *("PUBLIC_KEY", "KEY_FILE", "TOKENIZER", "token_count", "monkey", "primaryKey"),
    ],
)
def test_names_of_no_secrets(name: str) -> None:
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
def test_what_one_reads_is_not(value: str) -> None:
    assert not is_opaque(value)
    assert list(secrets_in(value, "LEVEL")) == []


def test_of_an_address_the_password_is_secret_too() -> None:
    assert list(secrets_in("postgres://ada:hunter2@db/lab")) == ["postgres://ada:hunter2@db/lab", "hunter2"]
    assert list(secrets_in("hunter2", "DB_PASSWORD")) == ["hunter2"]


def test_of_a_login_file_the_tokens_are_secret_and_the_rest_is_not() -> None:
    login = (
        f'{{"claude": {{"accessToken": "{SECRET}", "expiresAt": 1800000000000, "password": "hunter2", "plan": "max"}}}}'
    )
    assert secrets_in_file(login) == {SECRET, "hunter2"}
