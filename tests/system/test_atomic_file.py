"""A file that is replaced is there whole at each moment, whoever else writes; and the end of one that grows."""

from __future__ import annotations

import multiprocessing
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.given import refused
from workbench.errors import Unavailable
from workbench.system import atomic_file


def text(number: int) -> str:
    """One that is written in several pieces, and of a length of its own."""
    return f"{number:03} é\n" * (2_000 + number)


def write(path: Path) -> None:
    for number in range(20):
        atomic_file.replace(path, text(number))


@pytest.mark.long
@pytest.mark.timeout(60)
def test_a_reader_sees_one_whole_text_while_others_write(tmp_path: Path) -> None:
    path, whole = tmp_path / "list.txt", {text(number) for number in range(20)}
    atomic_file.replace(path, text(0))
    writers = [multiprocessing.get_context("spawn").Process(target=write, args=(path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    with ThreadPoolExecutor(4) as pool:
        more = [pool.submit(write, path) for _ in range(4)]
        while any(writer.is_alive() for writer in writers) or not all(one.done() for one in more):
            assert path.read_text("utf-8") in whole
        assert [one.result() for one in more] == [None] * 4
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert [found.name for found in tmp_path.iterdir()] == ["list.txt"]


def test_replace_creates_directories_and_sets_the_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_file.replace(tmp_path / "a" / "b" / "open.txt", "x")
        atomic_file.replace(tmp_path / "a" / "secret.json", "x", mode=0o600)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / "a" / name).stat().st_mode) for name in ("b/open.txt", "secret.json")]
    assert modes == [0o640, 0o600]


def test_a_failed_replacement_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(Unavailable, match=r"^PROJECT_UNWRITABLE.*taken cannot be written"):
        atomic_file.replace(tmp_path / "taken", "x")
    (tmp_path / "file").write_text("old")
    refused("PROJECT_UNWRITABLE", atomic_file.replace, tmp_path / "file" / "below", "x")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["file", "taken"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize(("size", "end"), [(1, "\n"), (4, "\N{REPLACEMENT CHARACTER}é\n"), (5, "éé\n"), (100, "aéé\n")])
def test_the_end_of_a_file_is_read_as_text_even_where_it_cuts_a_letter(tmp_path: Path, size: int, end: str) -> None:
    path = tmp_path / "log"
    path.write_text("aéé\n", "utf-8")
    assert atomic_file.tail(path, size) == end
