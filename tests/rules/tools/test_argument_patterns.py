"""Patterns of arguments: an asterisk is any text, but nothing that leads elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.tools.argument_patterns import matches, unnamed


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("notes/*", "notes/a/b.md", True),
        ("1", 1.0, True),  # as browsers write it
        ("1.0", 1.0, True),
        ("1", 1.5, False),
        ("notes/*", "notes", False),
        ("notes/*", "other/notes/a", False),
        ("notes/*", "notes/../../etc/passwd", False),
        ("notes/*", "notes/..", False),
        ("notes/*", "notes/a..b", True),
        ("notes/*", "notes/%2E%2e/etc", False),
        ("notes/*", "notes/a%2f..%2Fetc", False),
        ("cat notes/*", "cat notes/'..'/etc", False),
        ("notes/*", "notes/{..,a}/b", False),
        ("git diff *", "git diff main..work", True),
        ("*a*b*c", "xaxbxbxc", True),
        ("*a*b*c", "xbxaxc", False),
        ("a*a", "a", False),
        ("git log *", "git log --oneline", True),
        ("git log *", "git log; rm -rf .", False),
        ("git log *", "git log a && rm b", False),
        ("git log *", "git log $(rm b)", False),
        ("git log *", "git log a\nrm b", False),
        ("a.c", "abc", False),
        ("3", 3, True),
        ("true", True, True),
        ('["a"]', ["a"], True),
        ("*", {"any": "..;"}, True),
        ('{"url":"https://a/*"}', {"url": "https://a/b"}, True),
        ('{"url":"https://a/*"}', {"url": "https://a/b", "method": "DELETE"}, False),
        ("*a" * 50 + "b", "a" * 100_000, False),
    ],
)
def test_an_asterisk_is_text_that_leads_nowhere_else(pattern: str, value: Any, fits: bool) -> None:
    assert matches({"path": pattern}, {"path": value}) is fits


def test_every_argument_needs_a_pattern_and_every_pattern_an_argument() -> None:
    assert matches({}, {})
    assert not matches({"path": "*"}, {"path": "a", "force": True})
    assert not matches({"path": "*", "force": "*"}, {"path": "a"})
    assert unnamed({"path": "b"}, {"path": "a", "force": True}) == ["force", "path"]
