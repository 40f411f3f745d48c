"""Parses the lines of a Markdown checklist to a tree of items.

It parses lines because no Markdown library among Workbench's dependencies reports them. It refuses what Markdown would
silently read as something else: a malformed box, an item without one, text that may or may not belong to an item.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.rules.tasks.lifecycle import TREE_DEPTH
from workbench.rules.tasks.plan import attributes
from workbench.rules.tasks.plan.draft import Problems

_MARKER = r"[ \t]*([-*+]|\d{1,9}[.)])"
_ITEM = re.compile(rf"{_MARKER}[ \t]+\[([ xX])\](?:[ \t]+(.*))?", re.DOTALL)
_BOX = rf"{_MARKER}[ \t]*\[(?:[^\]\n]?|[ \t]*+(?:[xX][ \t]*+)?)\](?!\()"
_NEARLY = re.compile(_BOX)
_ANY = re.compile(rf"^{_BOX}", re.MULTILINE)
_BULLET = re.compile(rf"{_MARKER}[ \t]")
_QUOTED = re.compile(rf">[> \t]*{_BOX}")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def slug(title: str) -> str:
    """A title's words in lower case, joined by dashes; empty if it has no ASCII letters or digits."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:100].strip("-")


def has_items(text: str) -> bool:
    """Whether a text has anything like an item with a box."""
    return _ANY.search(text) is not None


def is_text(line: str) -> bool:
    """Whether an indented line is plain text: no item, fence or comment."""
    return not (_NEARLY.match(line) or _FENCE.match(line) or _begins_comment(line))


def _begins_comment(line: str) -> bool:
    return line.lstrip(" \t").startswith("<!--")


@dataclass
class PlanItem:
    """An item while it is being parsed."""

    line: int
    indent: int
    numbered: bool
    section: int
    """The number of its section; a heading or other text begins a new one."""
    ticked: bool
    title: str
    attributes: dict[str, Any]
    text: list[str] = field(default_factory=list)
    items: list[PlanItem] = field(default_factory=list)
    attributes_ended: bool = False
    """Whether its attribute lines have ended."""

    @property
    def name(self) -> str:
        """Its attribute `name`, or a name made from the title."""
        return str(self.attributes.get("name", slug(self.title)))

    def names(self) -> Iterator[str]:
        """The names of the item and all items in it, except ticked ones."""
        if not self.ticked:
            yield self.name
        for item in self.items:
            yield from item.names()


class ItemReader:
    """Parses line by line; `top` are the top-level items."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.title: tuple[int, str] | None = None
        self.top: list[PlanItem] = []
        self._path: list[PlanItem] = []
        self._section = 0
        self._after_text = False
        self._open: tuple[int, str] | None = None
        """The line in which an open fence or comment began, and the mark that closes it."""

    def line(self, number: int, line: str) -> None:
        """Parse the next line."""
        column = len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))
        if self._open:
            self._within(line, self._open[1])
        elif not line.strip():
            self._blank()
        elif found := _ITEM.fullmatch(line):
            self._item(number, column, found)
        elif _NEARLY.match(line):
            self.problems.add(number, "a task begins with `- [ ] ` or `1. [ ] `, a completed one with `- [x] `")
        elif begun := _FENCE.match(line):
            self._open = (number, begun[1])
            self._text(number, line, column, is_fence=True)
        elif _begins_comment(line):
            self._open = None if "-->" in line else (number, "-->")
        elif column:
            self._text(number, line, column)
        else:
            self._prose(number, line)

    def end(self) -> None:
        """Finish after the last line."""
        if self._open:
            self.problems.add(self._open[0], f"the fence or comment here is not closed by {self._open[1]!r}")

    def _within(self, line: str, closing: str) -> None:
        """Parse a line inside a comment or fence; a fence may be closed by a longer one."""
        is_comment, word = closing == "-->", line.strip()
        if closing in word if is_comment else word.startswith(closing) and not word.strip(closing[0]):
            self._open = None
        if not is_comment and self._path:
            self._path[-1].text.append(line)

    def _blank(self) -> None:
        self._after_text = False
        if self._path:
            self._path[-1].attributes_ended = True
            self._path[-1].text.append("")

    def _item(self, number: int, column: int, found: re.Match[str]) -> None:
        while self._path and column < self._path[-1].indent + 2:
            self._path.pop()
        if len(self._path) == TREE_DEPTH:
            self.problems.add(number, f"it has more than {TREE_DEPTH - 1} tasks above it")
            return
        title, fields, reasons = attributes.after_title(found[3] or "")
        item = PlanItem(number, column, found[1][0].isdigit(), self._section, found[2] != " ", title, fields)
        (self._path[-1].items if self._path else self.top).append(item)
        self._path.append(item)
        self._after_text = True
        for reason in reasons:
            self.problems.add(number, reason)

    def _text(self, number: int, line: str, column: int, is_fence: bool = False) -> None:
        """Parse an indented line; it belongs to the innermost item that is indented less."""
        while self._path and column <= self._path[-1].indent:
            self._path.pop()
        if not self._path:
            return
        item = self._path[-1]
        pair = None if item.attributes_ended or item.items or is_fence else attributes.line(line.strip())
        if pair is None:
            item.attributes_ended = True
            item.text.append(line)
        else:
            for reason in attributes.put(item.attributes, *pair):
                self.problems.add(number, reason)
        self._after_text = True

    def _prose(self, number: int, line: str) -> None:
        """Parse a line that is neither indented nor an item; it ends the list."""
        if _QUOTED.match(line):
            self.problems.add(number, "a quoted task is nobody's; write it without `>`, or without its box")
        heading = _HEADING.fullmatch(line)
        if heading is None and _BULLET.match(line):
            self.problems.add(number, "an item without a box; write `- [ ] ` for a task, or indent it below one")
        elif heading is None and self._after_text and self._path:
            self.problems.add(number, "indent this if it belongs to the item above; else put an empty line before it")
        if heading and len(heading[1]) == 1 and self.title is None:
            self.title = (number, heading[2].rstrip(" \t").rstrip("#").rstrip(" \t"))
        self._path.clear()
        self._section += 1
