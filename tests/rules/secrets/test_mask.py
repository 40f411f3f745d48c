"""A known secret occurs nowhere in what is masked, in no encoding; everything else stays."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st

from workbench.rules.secrets.forms import MASK
from workbench.rules.secrets.mask import LineMask, Mask

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
def test_nor_does_what_other_programs_make_of_it(secret: str, before: bytes, after: bytes) -> None:
    mask, whole = Mask([secret]), before + secret.encode() + after
    for text in (b64encode(whole).decode(), urlsafe_b64encode(whole).decode(), quote(secret), json.dumps(secret)):
        assert MASK in mask.text(f"it is {text}")


@given(JSON)
def test_without_secrets_the_value_stays(value: Any) -> None:
    assert Mask(forms=False).data(value) == value


def test_what_is_no_text_stays() -> None:
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
    assert Mask().data({"given": data}) == {"given": {**data, "api_key": MASK}}
    assert Mask(forms=False).data(data) == data


def test_colours_do_not_hide_a_known_secret() -> None:
    mask = Mask(["hunter2-of-the-person"])
    assert mask.text("it is \x1b[32mhunter2\x1b[0m-of-the-person") == f"it is {MASK}"
    assert mask.text("it is \x1b[32mhunter3\x1b[0m") == "it is \x1b[32mhunter3\x1b[0m"


def test_a_known_secret_of_words_is_masked() -> None:
    assert Mask(["correct horse", "sk-aB3dE5fG7hJ9kL1mN3pQ"]).text("a correct horse") == f"a {MASK}"


def test_of_two_secrets_the_longer_one_is_masked_whole() -> None:
    assert Mask(["abcdef", "abcdefghij"]).text("abcdefghij") == MASK


def test_a_short_secret_within_a_key_does_not_hide_the_rest_of_the_key() -> None:
    assert Mask(["ordinary"]).text("it is sk-abcdefghijk-ordinary-lmnopqrst") == f"it is {MASK}"


def test_of_a_secret_with_several_lines_each_is_masked() -> None:
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
