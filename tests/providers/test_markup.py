"""The Markdown of a model as HTML: nothing in it can load, run or pass for something else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.providers.markup import LONGEST, as_markup

ALLOWED = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {"href", "title", "class", "style", "start"}


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}


def parse_tags(text: str) -> Tags:
    tags = Tags()
    tags.feed(as_markup(text))
    return tags


def test_markdown_is_rendered() -> None:
    assert as_markup("# A *b*\n\n- `c`") == "<h1>A <em>b</em></h1>\n<ul>\n<li><code>c</code></li>\n</ul>\n"
    assert "<td>1</td>" in as_markup("|a|\n|-|\n|1|")


def test_an_image_is_a_link_that_a_person_may_follow() -> None:
    assert as_markup("![plot](https://example.org/a.png)") == '<p><a href="https://example.org/a.png">plot</a></p>\n'
    assert parse_tags("![a<b][r]\n\n[r]: https://example.org/x\n").tags == {"p", "a"}


def test_html_is_shown_as_text() -> None:
    assert as_markup("<script>alert(1)</script>") == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"
    assert as_markup("a <b onclick=x>") == "<p>a &lt;b onclick=x&gt;</p>\n"


@pytest.mark.parametrize("scheme", ["javascript", "data", "vbscript", "file", "JaVaScRiPt"])
def test_a_link_that_would_run_something_leads_nowhere(scheme: str) -> None:
    assert as_markup(f"[a]({scheme}:alert%281%29)") == '<p><a href="#harmful-link">a</a></p>\n'


def test_mathematics_stays_latex_and_amounts_stay_text() -> None:
    assert as_markup("$a_b < c_d$") == "<p>\\(a_b &lt; c_d\\)</p>\n"
    assert as_markup("$$\n<x>\n$$") == "<p>$$&lt;x&gt;$$</p>\n"
    assert as_markup("$5 or $6") == "<p><span>$</span>5 or <span>$</span>6</p>\n"


def test_characters_that_control_a_page_are_escaped() -> None:
    assert as_markup("a\x1b[2J\u202eb") == "<p>a\\u001b[2J\\u202eb</p>\n"


def test_a_long_text_is_shown_as_it_is() -> None:
    assert as_markup("*a*" * LONGEST).startswith('<pre style="white-space: pre-wrap">*a**a*')


@given(st.text(alphabet="<>[]()!*_`$|~&\"'#-:= \n\\\x00abjavscriptonerr/", max_size=120))
@example('<img src=x onerror="a">')
@example('[a](x "onmouseover=b")')
@example('```"><img>\nx')
def test_any_answer_of_a_model_becomes_plain_elements_only(text: str) -> None:
    found = parse_tags(text)
    assert found.tags <= ALLOWED
    assert {name for name, _ in found.attributes} <= ATTRIBUTES
    assert not [
        value for name, value in found.attributes if name == "href" and re.match(r"\s*javascript:", value, re.I)
    ]
