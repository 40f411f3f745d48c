"""Reads YAML that people write by hand, as JSON values; edits it without losing its comments.

Reading is strict: no aliases (a few lines could expand to billions of nodes), no tags, no duplicate keys, and a limited
depth. As in YAML 1.2, `yes`, `on`, dates, `12:30` and numbers with leading zeros are text, and `1e-3` is a number.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from workbench.rules.wire.json_safety import DEPTH_LIMIT
from workbench.rules.yaml_lines import changed_in_place, is_same

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_MOST_DIGITS = 4_000
"""Of whole numbers: Python refuses to read more than 4,300."""
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InvalidYaml(Exception):
    """A text that is not YAML of this kind; the message says why.

    Args:
        line: where, from 1; None if that is not known.
    """

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


def load(text: str, mapping: Callable[[int], dict[str, Any]] = lambda _line: {}, scanner: Any = _Loader) -> Any:
    """Parse YAML: mappings with text as keys, lists, text, finite numbers, booleans and None.

    Args:
        mapping: makes the mapping that begins in a line, from 1; it is filled afterwards.
        scanner: a loader of PyYAML, of which the events are used; that in Python takes `{a:}` too.

    Raises:
        InvalidYaml: see there.
    """
    try:
        loader = scanner(text)
    except yaml.YAMLError as error:  # a character that YAML has not
        raise InvalidYaml(str(error), None) from None
    try:
        return _Reader(loader.get_event, mapping).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidYaml(str(error.problem or error.context), mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidYaml(str(error), None) from None
    finally:
        loader.dispose()


class _Reader:
    """Makes values of the parser's events.

    The parser's own `compose` recurses without a limit: it crashes the process on a text that is nested deeply.

    Args:
        take: the next event.
        mapping: see `load`.
    """

    def __init__(self, take: Callable[[], Any], mapping: Callable[[int], dict[str, Any]]) -> None:
        self._take = take
        self._new_mapping = mapping

    def document(self) -> Any:
        """The value of the only document; None if there is none."""
        self._take()  # the start of the stream
        if isinstance(self._take(), yaml.StreamEndEvent):
            return None
        value = self._value(self._take(), 0)
        self._take()  # the end of the document
        if not isinstance(after := self._take(), yaml.StreamEndEvent):
            raise _invalid(after, "it must be a single document")
        return value

    def _value(self, event: Any, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise _invalid(event, "it is nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            raise _invalid(event, "aliases are not allowed")
        if event.tag is not None:
            raise _invalid(event, f"the tag {event.tag} is not allowed")
        match event:
            case yaml.ScalarEvent():
                return _scalar(event)
            case yaml.SequenceStartEvent():
                return [self._value(item, depth + 1) for item in self._until(yaml.SequenceEndEvent)]
        return self._mapping(event.start_mark.line + 1, depth)

    def _mapping(self, line: int, depth: int) -> dict[str, Any]:
        made = self._new_mapping(line)
        for key in self._until(yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent) or key.tag is not None or _is_merge(key):
                raise _invalid(key, "a key must be a word")
            if key.value in made:
                raise _invalid(key, f"the key {key.value!r} is given twice")
            made[key.value] = self._value(self._take(), depth + 1)
        return made

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        while not isinstance(event := self._take(), end):
            yield event


def _is_merge(key: Any) -> bool:
    return key.value == "<<" and not key.style


def _scalar(event: Any) -> Any:
    text = event.value
    if event.style:  # quoted, or a block
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text) and len(text) <= _MOST_DIGITS:
        return int(text)
    if not _FLOAT.fullmatch(text) and not _INT.fullmatch(text):
        return text
    if math.isinf(number := float(text)):
        raise _invalid(event, f"{text} is too large a number")
    return number


def _invalid(event: Any, reason: str) -> InvalidYaml:
    return InvalidYaml(reason, event.start_mark.line + 1)


def write(value: Any) -> str:
    """Write JSON values as YAML in block style, long text as literal blocks; keys keep their order."""
    is_block = isinstance(value, str) and "\n" in value  # as a whole document it would have no indentation
    return _dumped(DoubleQuotedScalarString(value) if is_block else _new(value))


def edit(text: str, value: Any) -> str:
    """Change YAML so that it parses to a value; comments, order, style and ends of lines of what stays are kept.

    Raises:
        InvalidYaml: the text is no YAML that `load` parses.
    """
    if is_same(old := load(text), value):
        return text
    changed = changed_in_place(text.replace("\r\n", "\n"), old, value, write, _in_line)
    return with_ends_of(text, changed if _is_yaml_of(changed, value) else write(value))


def with_ends_of(before: str, text: str) -> str:
    """A text of which the lines end as they did before: as on Windows, or with a newline."""
    return text.replace("\n", "\r\n") if "\r\n" in before else text


def _in_line(value: Any) -> str:
    """A value as it is written after a key: a scalar, or a collection in flow style."""
    if not isinstance(value, (dict, list)):
        return write({"x": value}).removeprefix("x:").strip(" ").removesuffix("\n")
    plain = yaml.safe_dump(
        value, default_flow_style=True, width=sys.maxsize, allow_unicode=True, sort_keys=False
    ).strip()
    return plain if _is_yaml_of(plain, value) else json.dumps(value)


def _is_yaml_of(text: str, value: Any) -> bool:
    try:
        return is_same(load(text), value)
    except InvalidYaml:
        return False


def _editor() -> YAML:
    yaml_editor = YAML()
    yaml_editor.preserve_quotes = True
    yaml_editor.width = 100_000  # it wraps nothing
    yaml_editor.indent(mapping=2, sequence=4, offset=2)
    return yaml_editor


def _dumped(document: Any) -> str:
    stream = StringIO()
    _editor().dump(document, stream)
    text: str = stream.getvalue()
    return text


def _new(value: Any) -> Any:
    match value:
        case dict():
            made = CommentedMap()
            for key, one in value.items():
                made[_key(key)] = _new(one)
            return made
        case list():
            return CommentedSeq(map(_new, value))
        case str():
            return _text(value)
    return value


def _key(key: str) -> Any:
    return key if key.isprintable() else DoubleQuotedScalarString(key)


def _text(text: str) -> Any:
    """A text as a literal block if it has several lines and a block can hold it; quoted if it is not printable."""
    lines = text.split("\n")
    if not all(map(str.isprintable, lines)):
        return DoubleQuotedScalarString(text)
    fits = len(lines) > 1 and lines[0][:1].strip() and all(line == line.rstrip() for line in lines)
    return LiteralScalarString(text) if fits else text
