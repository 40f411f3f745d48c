"""The launcher as bytecode: made once, and run only if it is this source's and this user's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.confinement.compiled import FORK_SERVER, LAUNCHER, compiled, program


@pytest.fixture
def source(tmp_path: Path) -> Path:
    program = tmp_path / "program.py"
    program.write_text("print('first')")
    return program


def output(program: Path) -> str:
    return subprocess.run([sys.executable, "-I", "-S", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("source", [LAUNCHER, FORK_SERVER], ids=lambda path: path.stem)
def test_boxed_commands_do_not_compile_what_starts_them(source: Path) -> None:
    assert program(source).suffix == ".pyc"


def test_a_program_that_has_changed_is_compiled_again(source: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    assert output(compiled(source, [place])) == "first\n"
    source.write_text("print('other')")
    assert output(compiled(source, [place])) == "other\n"


def test_bytecode_that_another_user_can_write_is_not_run(source: Path, tmp_path: Path) -> None:
    open_place, own_place = tmp_path / "open", tmp_path / "own"
    open_place.mkdir()
    open_place.chmod(0o777)
    assert compiled(source, [open_place]) == source
    assert compiled(source, [open_place, own_place]).parent == own_place
    compiled(source, [own_place]).chmod(0o666)
    assert compiled(source, [own_place]).stat().st_mode & 0o777 == 0o644, "it is made anew"


def test_a_link_in_the_place_of_bytecode_is_not_followed(source: Path, tmp_path: Path) -> None:
    place, kept = tmp_path / "cache", tmp_path / "kept"
    path = compiled(source, [place])
    path.rename(kept)
    path.symlink_to(kept)
    made = compiled(source, [place])
    assert made == path
    assert not made.is_symlink()
