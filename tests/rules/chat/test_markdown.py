"""Text of models and tools runs and loads nothing when its export becomes a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from workbench.services.conversations.export import escaped, harmless

PIECES = [
    "<img src=x onerror=P(1)>",
    "<b>",
    "![",
    "](x)",
    "`",
    "``",
    "```",
    "~~~",
    "\\",
    "\n",
    "\n\n",
    "    ",
    "- ",
    "> ",
    "# ",
]
"""What opens and ends code, blocks, images and HTML."""


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").parse(text):
        yield token
        yield from token.children or ()


@given(st.lists(st.sampled_from([*PIECES, "a", " ", "1. ", "<!--", "-->", "&lt;"]), max_size=14).map("".join))
@example("- a\n\n  ```\n<img src=x onerror=P(1)>\n  ```")
@example("`\n# x\n<img src=x onerror=P(1)>`")
@example("\\` <img src=x onerror=P(1)> `")
def test_no_html_and_no_picture_is_left_in_markdown(text: str) -> None:
    assert [
        token.type for token in tokens(harmless(text)) if token.type in ("html_inline", "html_block", "image")
    ] == []


@pytest.mark.parametrize(
    "text", ["```\n    ```\n<b>\n```\n*c*", "```html\n<div>\n</div>\n```", "**a** [b](https://example.org) \\*c\\*"]
)
def test_ordinary_markdown_and_code_stay(text: str) -> None:
    assert harmless(text) == text


@given(st.text(st.sampled_from("ab<>![](`*_#\\&;~ "), max_size=30))
def test_a_title_is_shown_as_it_is(text: str) -> None:
    heading = MarkdownIt("commonmark").parse(f"# {escaped(text)}")[1]
    assert heading.content == escaped(text) or not text.strip()
    assert {token.type for token in heading.children or ()} <= {"text", "text_special"}
