"""A stream is split into lines, of which none is held beyond the limit; of a longer one it is known what it answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.upstream.lines import EDGE, LineSplitter, TooLong

LONGEST = 2_000


def split(data: bytes, sizes: list[int]) -> list[bytes | TooLong]:
    """The lines of data that comes in chunks."""
    lines, found, at = LineSplitter(LONGEST), [], 0
    while at < len(data):
        size = sizes[len(found) % len(sizes)] if sizes else len(data)
        found_now = list(lines.feed(data[at : at + size]))
        found += found_now
        at += size
    return found


@given(
    st.lists(st.binary(max_size=3 * LONGEST).map(lambda line: line.replace(b"\n", b"-"))), st.lists(st.integers(1, 500))
)
def test_lines_are_the_same_whatever_the_chunks(lines: list[bytes], sizes: list[int]) -> None:
    words = split(b"".join(line + b"\n" for line in lines), sizes)
    expected = [line for line in lines if line]
    assert len(words) == len(expected)
    for line, one in zip(expected, words, strict=True):
        if len(line) <= LONGEST:
            assert one == line
        else:
            assert isinstance(one, TooLong)
            assert (line[:EDGE], line[-EDGE:]) == (one.start, one.end[-EDGE:])


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 7, "result": {"content": "x" * 3 * LONGEST}},
        {"id": 7, "jsonrpc": "2.0", "result": {"content": ["x" * 3 * LONGEST, {"id": 8}]}},
        {"result": {"content": "x" * 3 * LONGEST, "id": 8}, "jsonrpc": "2.0", "id": 7},
        {"jsonrpc": "2.0", "result": {"content": "x" * 3 * LONGEST}, "id": 7},
    ],
)
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_the_request_that_a_long_line_answers_is_known(message: object, separators: tuple[str, str]) -> None:
    [line] = split(json.dumps(message, separators=separators).encode() + b"\n", [100])
    assert isinstance(line, TooLong)
    assert line.answers == 7


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 3 * LONGEST, "id": 7}},
        {"result": {"content": "x" * 3 * LONGEST, "id": 7}},
        "x" * 3 * LONGEST,
    ],
)
def test_a_long_line_that_answers_nothing_is_known_as_such(message: object) -> None:
    [line] = split(json.dumps(message).encode() + b"\n", [100])
    assert isinstance(line, TooLong)
    assert line.answers is None


@given(st.lists(st.binary(max_size=3_000), max_size=30))
def test_at_most_the_limit_and_one_chunk_are_kept_in_memory(chunks: list[bytes]) -> None:
    lines = LineSplitter(LONGEST)
    for chunk in chunks:
        list(lines.feed(chunk.replace(b"\n", b"")))
        assert sum(map(len, lines._parts)) <= LONGEST + 3_000
