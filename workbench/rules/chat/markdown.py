"""Markdown that others wrote, made harmless: it runs nothing and loads nothing once it is made a page (CommonMark)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"(`{3,})[^`]*")
_PERHAPS_FENCE = re.compile(r"`{3}|~{3}")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def harmless(text: str) -> str:
    """Markdown with its HTML as text, and links in place of images. Code in blocks that surely are ones stays."""
    return "\n".join(_harmless(text.split("\n")))


def _harmless(lines: list[str]) -> Iterator[str]:
    fence, is_sure = "", True
    for line in lines:
        if fence:
            fence = "" if re.fullmatch(rf" {{0,3}}{fence}`*[ \t]*", line) else fence
            yield line
        elif is_sure and (opened := _FENCE.fullmatch(line)):
            fence = opened[1]
            yield line
        else:  # a fence that is not at the margin may be part of a list, and end with it
            is_sure = is_sure and not _PERHAPS_FENCE.search(line)
            yield line.replace("<", "&lt;").replace("![", "[")


def escaped(text: str) -> str:
    """A line of text as Markdown that shows exactly that."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(text.split()))
