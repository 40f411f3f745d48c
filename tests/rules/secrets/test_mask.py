"""A known secret occurs nowhere in what is masked, in no encoding; everything else stays."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rules.secrets.test_forms import SECRET
from workbench.rules.secrets.encodings import PIECE
from workbench.rules.secrets.forms import KEY_LINES, MASK
from workbench.rules.secrets.mask import LineMask, Mask, StreamMask

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@example(78_125_000_000, "000000")
@given(JSON, st.text(min_size=6, max_size=20))
def test_a_known_secret_occurs_nowhere(value: Any, secret: str) -> None:
    where = {"a": value, f"k{secret}": [secret, f"x{secret}y", {"deep": f"Bearer {secret}"}]}
    assert secret not in str(Mask([secret]).data(where)).replace(MASK, "")


@given(st.text(min_size=8, max_size=40), st.binary(max_size=5), st.binary(max_size=5))
@example("00000\x1b[@", b"", b"")
@example("00000~00", b"", b"")
def test_encodings_of_a_secret_by_other_programs_are_masked(secret: str, before: bytes, after: bytes) -> None:
    mask, whole = Mask([secret]), before + secret.encode() + after
    for text in (b64encode(whole).decode(), urlsafe_b64encode(whole).decode(), quote(secret), json.dumps(secret)):
        assert MASK in mask.text(f"it is {text}")


ESCAPES: list[Callable[[str], str]] = [
    str,
    lambda one: "".join(f"%{byte:02x}" for byte in one.encode()),
    lambda one: "".join(f"%{byte:02X}" for byte in one.encode()),
    lambda one: json.dumps(one)[1:-1],
    lambda one: "".join(f"\\u{ord(unit):04x}" for unit in one if ord(unit) < 0x10000) or one,
    lambda one: "".join(f"\\x{byte:02x}" for byte in one.encode()),
    lambda one: f"&#{ord(one)};",
    lambda one: json.dumps(json.dumps(one)[1:-1])[1:-1],
]


@given(
    st.text("aZ7é+/ &%\"'漢🐧", min_size=6, max_size=12), st.lists(st.sampled_from(ESCAPES), min_size=12, max_size=12)
)
@example("77777777%777", [ESCAPES[1], *ESCAPES[:1] * 11])
def test_a_secret_whose_characters_are_escaped_in_any_way_is_masked(
    secret: str, escapes: list[Callable[[str], str]]
) -> None:
    written = "".join(escape(one) for one, escape in zip(secret, escapes, strict=False))
    assert Mask([secret]).text(f"100% of it: {written}<") in (
        f"100% of it: {MASK}<",
        f"100% of it: {written}<" * (MASK in secret),
    )


@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda secret: b64encode(f"user:{secret}\n".encode()).decode(),
        lambda secret: urlsafe_b64encode(f"\n{secret}".encode()).decode(),
        lambda secret: secret.encode().hex(),
        lambda secret: f"xx{secret}".encode().hex().upper(),
        lambda secret: quote(b64encode(secret.encode()), safe=""),
    ],
)
def test_the_parts_of_a_secret_that_is_broken_into_lines_are_masked(write: Callable[[str], str]) -> None:
    secret = "sk-ant-api03-7fQx/9+Zk_w3B-8tRmN4vLc2~Hs6JdY0pGbXe5Wa1TrUoKi7fEyPq8zVuMlOhA"
    written, mask = write(secret), Mask([secret])
    for width in (34, 60, 64, 76):
        for start in range(0, len(written), width):
            line = written[start : start + width]
            assert len(mask.text(f"> {line}").replace(MASK, "")) <= 2 + 2 * len("user:") or len(line) < 2 * PIECE, line


def test_what_a_secret_has_in_common_with_ordinary_texts_stays() -> None:
    address = "postgres://ada:hunter2-of-ada@database.example.org:5432/measurements_of_2026"
    mask = Mask([address, "sk-ant-api03-7fQx9Zkw3B8tRsk", "correct-horse-battery-staple-of-the-person"])
    text = "psql database.example.org:5432/measurements_of_2026; sk-ant-api03-; a correct-horse-battery-staple"
    assert mask.text(text) == text


@given(JSON)
def test_masking_without_secrets_keeps_the_value(value: Any) -> None:
    assert Mask(forms=False).data(value) == value


def test_masking_data_keeps_values_that_are_no_text() -> None:
    data = {"key-abcd": ["key-abcd", {"deep": "x key-abcd"}, 7, None, True], "abc": "abc", "n": 1.1234}
    shown = {MASK: [MASK, {"deep": f"x {MASK}"}, 7, None, True], "abc": "abc", "n": 1.1234}
    assert Mask(["key-abcd", "abc", "1234"]).data(data) == shown


def test_in_data_a_value_is_secret_after_the_name_of_one_unless_it_is_readable() -> None:
    data = {
        "api_key": "hunter2-7",
        "clientSecret": ["a"],
        "key": "val/loss",
        "max_tokens": "128k-x1",
        "password": "none",
    }
    assert Mask().data({"given": data}) == {"given": {**data, "api_key": MASK, "clientSecret": [MASK]}}
    assert Mask(forms=False).data(data) == data


def test_colours_do_not_hide_a_known_secret() -> None:
    mask = Mask(["hunter2-of-the-person"])
    assert mask.text("it is \x1b[32mhunter2\x1b[0m-of-the-person") == f"it is {MASK}"
    assert mask.text("it is \x1b[32mhunter3\x1b[0m") == "it is \x1b[32mhunter3\x1b[0m"


def test_a_known_secret_of_words_is_masked() -> None:
    assert Mask(["correct horse", "sk-aB3dE5fG7hJ9kL1mN3pQ"]).text("a correct horse") == f"a {MASK}"


def test_the_longer_of_two_overlapping_secrets_is_masked_whole() -> None:
    assert Mask(["abcdef", "abcdefghij"]).text("abcdefghij") == MASK


def test_a_short_secret_within_a_key_does_not_hide_the_rest_of_the_key() -> None:
    assert Mask(["ordinary"]).text("it is sk-abcdefghijk-ordinary-lmnopqrst") == f"it is {MASK}"


def test_each_line_of_a_secret_with_several_lines_is_masked() -> None:
    mask = Mask(["-----BEGIN KEY-----\nMIIabcdefghij\n-----END KEY-----"])
    assert mask.text("MIIabcdefghij") == MASK


def test_a_private_key_that_comes_line_by_line_is_masked() -> None:
    for kind in ("EC PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        begin, end = f"-----BEGIN {kind}-----", f"-----END {kind}-----"
        assert list(map(LineMask(Mask().text), ["a", begin, "MIIa", "bb", end, "c"])) == [
            "a",
            begin,
            MASK,
            MASK,
            end,
            "c",
        ]


def test_an_unterminated_private_key_masks_no_other_text() -> None:
    begin, base64 = "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"
    lines = [begin, "Proc-Type: 4,ENCRYPTED", "", f"{base64}=", f"12: INFO {base64}", "and then it worked", "c"]
    shown = [begin, *[MASK] * 4, "and then it worked", "c"]
    assert list(map(LineMask(Mask().text), lines)) == shown
    assert Mask().text("\n".join(lines)) == f"{begin}{MASK}\nand then it worked\nc"
    stream = StreamMask(Mask().text)
    assert stream("\n".join(lines)) + stream.rest() == f"{begin}{MASK}\nand then it worked\nc"
    unending = LineMask(Mask().text)
    assert [unending(line) for line in (begin, *["word"] * 1_000)].count("word") == 1_000 - KEY_LINES


@pytest.mark.parametrize(
    "data",
    [
        *(
            {"password": "hunter2"},
            {"password": "swordfish"},
            {"passwords": ["hunter2", "x1"]},
            {"dbPassword": "a b c"},
        ),
        *(
            {"api_key": "abc"},
            {"access_token": "abcdef"},
            {"token": "a1b2c3d4"},
            {"Cookie": "a=b"},
            {"password": 4815162342},
        ),
        *({"deep": [{"client_secret": "ab"}]}, {"env": {"DB_PASS": "x"}}, {"keys": [SECRET]}),
    ],
)
def test_a_value_is_masked_because_of_its_key(data: Any) -> None:
    [(name, value)] = data.items()
    before, after = json.dumps(data), json.dumps(Mask().data(data), ensure_ascii=False)
    assert name in after
    assert after != before
    assert Mask().data(Mask().data(data)) == Mask().data(data), value


@pytest.mark.parametrize(
    "data",
    [
        *(
            {"max_tokens": 4096},
            {"tokens": 12},
            {"keyboard": "qwerty"},
            {"tokens": ["the", "##ing", "Ġcat"]},
            {"token": "the"},
        ),
        *(
            {"key": "loss"},
            {"Key": "data/2026/x.parquet"},
            {"key": "PROJ-123"},
            {"tokens": 123_456_789},
            {"auth": "basic"},
        ),
        *({"password": "required"}, {"password": None}, {"password": ""}, {"password": True}, {"secret": "env://S"}),
        *({"password": "${PASSWORD}"}, {"api_key": "<your key>"}, {"author": "Ada Lovelace"}, {"keys": ["a", "b"]}),
        *({"properties": {"password": {"type": "string"}}}, {"primary_key": "user_id1"}, {"token_type": "bearer"}),
        *(
            {"next_page_token": "CAESB3dk1a2b3c4d5e"},
            {"cache_key": "a1b2c3d4e5f6a7b8c9"},
            {"token": "2026-11-27T10:00:00Z"},
            {"secrets": [{"place": "providers.x"}]},
        ),
    ],
)
def test_a_value_without_a_secret_key_stays(data: Any) -> None:
    assert Mask().data(data) == data
