"""A text that comes in pieces is masked as a whole, wherever they cut it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.rules.secrets.test_forms import FORMS, SECRET
from workbench.rules.secrets.forms import MASK
from workbench.rules.secrets.mask import Mask, StreamMask

TEXTS = [f"Here it is: {form} and more.\nThe next line, é, 漢字.\nEnd" for form in FORMS]


@example(next(text for text in TEXTS if "RSA PRIVATE" in text), [1])
@given(st.sampled_from(TEXTS), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_the_pieces_together_are_the_masked_text(text: str, lengths: list[int]) -> None:
    mask, shown, start = StreamMask(Mask().text), [], 0
    for length in lengths * len(text):
        shown.append(mask(text[start : start + length]))
        start += length
    assert "".join(shown) + mask.rest() == Mask().text(text)
    assert SECRET not in "".join(shown)


def test_words_are_shown_as_soon_as_they_have_ended() -> None:
    mask = StreamMask(Mask(["hunter2"]).text)
    assert [mask(piece) for piece in ("One ", "two th", "ree, hun", "ter2 ", "漢字", "end")] == [
        *("One ", "two ", "three, ", f"{MASK} ", "漢字", "")
    ]
    assert (mask.rest(), mask.rest()) == ("end", "")


def test_text_after_a_private_key_is_shown() -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"
    mask = StreamMask(Mask().text)
    assert mask(f"{key}Then ") == f"-----BEGIN PRIVATE KEY-----{MASK}-----END PRIVATE KEY-----\nThen "
