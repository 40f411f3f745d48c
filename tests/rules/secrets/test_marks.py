"""A secret of which only the mark is known occurs nowhere by itself, in no encoding; everything else stays."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rules.secrets.test_forms import FORMS, SECRET
from workbench.rules.secrets.forms import MASK
from workbench.rules.secrets.marks import Marks, marks
from workbench.rules.secrets.mask import Mask, standing_alone

KEY = bytes(32)
ORDINARY = Path(__file__).with_name("ordinary.txt").read_text("utf-8")


def mask(*values: str) -> Mask:
    return Mask(forms=False, marks=Marks(KEY, marks(KEY, standing_alone(values))))


@given(st.text(min_size=8, max_size=40).filter(lambda text: len(text.splitlines()) == 1))
@example(
    "00000000000\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\ufb13\u080000000\U00010000"
)  # in base64, a part has a form
def test_a_secret_occurs_nowhere_by_itself_nor_does_what_other_programs_make_of_it(secret: str) -> None:
    forms = (
        *(secret, b64encode(secret.encode()).decode(), urlsafe_b64encode(secret.encode()).decode()),
        *(quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)),
    )
    for form in forms:
        bare = form.strip('"') if form.startswith('"') else form
        assert bare.rstrip("=") not in mask(secret).text(f"it is ({form}).")


@pytest.mark.parametrize(
    "around", ["KEY={}", "k={};", "{}", "'{}'", "x: {}", "http://h/?k={}&b=1", "me:{}@host", "{}\n"]
)
def test_a_marked_secret_is_masked_whatever_surrounds_it(around: str) -> None:
    for secret in ("hunter2", "+blue/horse=", "a phrase of words"):
        assert mask(secret).text(around.format(secret)) == around.format(MASK)


def test_a_marked_secret_within_a_longer_word_stays() -> None:
    assert mask("hunter2").text("hunter22 xhunter2 hunter") == "hunter22 xhunter2 hunter"


def test_ordinary_texts_stay() -> None:
    known = mask("hunter2", "k9-Blue_horse-7-x1y2z3", "a phrase of words nobody wrote", "QX" * 20)
    assert known.text(ORDINARY) == ORDINARY


def test_keys_and_numbers_are_masked_too() -> None:
    known = mask("hunter2", "123456", "1234")
    assert known.data({"hunter2": [123456, 1234, True]}) == {MASK: [MASK, 1234, True]}


def test_marks_depend_on_the_key_and_secrets_of_a_known_form_get_none() -> None:
    of_key, of_another = ({one.mark for one in marks(key, ["hunter2", "a b c d"])} for key in (KEY, bytes([1]) * 32))
    assert (len(of_key | of_another), of_key & of_another) == (4, set())
    assert marks(KEY, [form for form in FORMS if SECRET in form]) == []


def test_a_short_secret_within_a_key_does_not_hide_the_rest_of_the_key() -> None:
    both = Mask(marks=Marks(KEY, marks(KEY, ["ordinary"])))
    assert both.text("it is sk-abcdefghijk-ordinary-lmnopqrst") == f"it is {MASK}"
