"""Changes YAML in place: only the lines of what changes are written anew, everything else stays exactly as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from textwrap import dedent, indent
from typing import Any

import yaml

Writer = Callable[[Any], str]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
"""What ends lines for parsers too: lines are counted here by newlines alone."""


@dataclass(frozen=True, order=True, slots=True)
class _Edit:
    """The characters from one to before another one become a text."""

    start: int
    stop: int
    text: str


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(is_same(value, other[key]) for key, value in one.items())
        case list(), list():
            return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def changed_in_place(text: str, old: Any, new: Any, write: Writer, write_in_line: Writer) -> str:
    """YAML with a new value, as far as that can be written in its lines: the caller checks what it parses to.

    Comments stay, other than those within what is removed or written anew.

    Args:
        text: YAML without aliases, of limited depth.
        old: what it parses to.
        new: what it shall parse to.
        write: writes a value in block style.
        write_in_line: writes a value in one line if possible, without a line break after it.
    """
    if _OTHER_BREAKS.search(text):
        return text
    text = text.removesuffix("\n") + "\n"
    edits = sorted(_Lines(text, write, write_in_line).edits(yaml.compose(text, _Loader), old, new), reverse=True)
    for edit in edits:
        text = text[: edit.start] + edit.text + text[edit.stop :]
    return text


class _Lines:
    """Finds the edits of a text."""

    def __init__(self, text: str, write: Writer, write_in_line: Writer) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._write = write
        self._write_in_line = write_in_line

    def edits(self, node: Any, old: Any, new: Any) -> Iterator[_Edit]:
        """The edits that give a node a new value."""
        if is_same(old, new):
            return
        if _is_block(node, yaml.MappingNode) and isinstance(new, dict) and new:
            yield from self._of_mapping(node, old, new)
        elif _is_block(node, yaml.SequenceNode) and isinstance(new, list) and new:
            yield from self._of_sequence(node, old, new)
        elif node is not None and node.start_mark.line == node.end_mark.line:
            yield from self._in_line(node, new)

    def _of_mapping(self, node: Any, old: dict[str, Any], new: dict[str, Any]) -> Iterator[_Edit]:
        column = node.start_mark.column
        for key, child in node.value:
            if key.value not in new:
                yield from self._removal(key.start_mark.line, column, child, "")
            elif _fits(child, new[key.value]):
                yield from self.edits(child, old[key.value], new[key.value])
            else:
                start, stop = self._offset(key.start_mark), self._starts[self._stop(key.start_mark.line, column, child)]
                yield _Edit(start, stop, indent(self._write({key.value: new[key.value]}), " " * column).lstrip(" "))
        if added := {key: value for key, value in new.items() if key not in old}:
            key, child = node.value[-1]
            end = self._starts[self._stop(key.start_mark.line, column, child)]
            yield _Edit(end, end, indent(self._write(added), " " * column))

    def _of_sequence(self, node: Any, old: list[Any], new: list[Any]) -> Iterator[_Edit]:
        column = node.start_mark.column
        matcher = SequenceMatcher(None, [repr(item) for item in old], [repr(item) for item in new], autojunk=False)
        for _, begin, end, new_begin, new_end in matcher.get_opcodes():
            both = min(end - begin, new_end - new_begin)
            for index in range(both):
                yield from self._of_item(node.value[begin + index], column, old[begin + index], new[new_begin + index])
            for child in node.value[begin + both : end]:
                yield from self._removal(child.start_mark.line, column, child, "-")
            if added := new[new_begin + both : new_end]:
                at = self._after_item(node, column, begin + both)
                yield _Edit(at, at, self._items(added, column))

    def _of_item(self, child: Any, column: int, old: Any, new: Any) -> Iterator[_Edit]:
        if _fits(child, new) and _keeps_its_first_line(child, new):
            yield from self.edits(child, old, new)
        else:
            line = child.start_mark.line
            start, stop = self._starts[line], self._starts[self._stop(line, column, child)]
            yield _Edit(start, stop, self._items([new], column))

    def _after_item(self, node: Any, column: int, index: int) -> int:
        """Where an item is inserted, so that it gets an index."""
        child = node.value[max(index - 1, 0)]
        line: int = child.start_mark.line
        return self._starts[self._stop(line, column, child) if index else line]

    def _items(self, items: list[Any], column: int) -> str:
        return indent(dedent(self._write(items)), " " * column)

    def _in_line(self, node: Any, new: Any) -> Iterator[_Edit]:
        """Write a value in the place of another one, if it fits into the line."""
        start, stop, line = self._offset(node.start_mark), self._offset(node.end_mark), self._write_in_line(new)
        if "\n" not in line:
            yield _Edit(start, stop, f" {line}" if start == stop else line)

    def _removal(self, line: int, column: int, child: Any, before: str) -> Iterator[_Edit]:
        """Remove the lines of an item, unless it begins in a line with others."""
        stop = self._stop(line, column, child)
        if self._lines[line][: child.start_mark.column if before else column].strip() != before:
            return
        if line and not self._lines[line - 1].strip() and stop < len(self._lines) - 1 and not self._lines[stop].strip():
            stop += 1
        yield _Edit(self._starts[line], self._starts[stop], "")

    def _stop(self, line: int, column: int, child: Any) -> int:
        """The line after an item that begins at a line and column; comments after it are about what follows."""
        is_block = child.style in ("|", ">") if isinstance(child, yaml.ScalarNode) else not child.flow_style
        stop: int = max(child.end_mark.line, line + 1) if is_block else child.end_mark.line + 1
        while stop > line + 1 and _is_between(self._lines[stop - 1], column):
            stop -= 1
        return stop

    def _offset(self, mark: Any) -> int:
        return int(self._starts[mark.line] + mark.column)


def _is_block(node: Any, kind: type[yaml.CollectionNode]) -> bool:
    return isinstance(node, kind) and not node.flow_style


def _fits(node: Any, new: Any) -> bool:
    """Whether a node can get a new value without being written anew from its key on."""
    if _is_block(node, yaml.MappingNode) or _is_block(node, yaml.SequenceNode):
        return bool(new) and isinstance(new, dict if isinstance(node, yaml.MappingNode) else list)
    is_in_line = node.start_mark.line == node.end_mark.line and getattr(node, "style", None) not in ("|", ">")
    if isinstance(node, yaml.ScalarNode):
        return is_in_line and not (isinstance(new, dict | list) and new) and "\n" not in str(new)
    return is_in_line and bool(node.value) and isinstance(new, dict | list)


def _keeps_its_first_line(item: Any, new: Any) -> bool:
    """Whether what stands in the line of an item's hyphen stays there."""
    if _is_block(item, yaml.MappingNode):
        return item.value[0][0].value in new
    return not _is_block(item, yaml.SequenceNode)


def _is_between(line: str, column: int) -> bool:
    """Whether a line is blank, or a comment that is not indented further than an item."""
    stripped = line.lstrip(" ")
    return not stripped.strip() or (stripped.startswith("#") and len(line) - len(stripped) <= column)
