"""Locks between processes: one holder at a time, whatever becomes of the file."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.users import NOBODY
from workbench.errors import Unavailable
from workbench.system.file_lock import held


def test_a_lock_whose_file_was_removed_and_made_again_by_another_holder_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One opens the file; its holder removes and frees it; another makes and holds a new one; then the first locks."""
    path = tmp_path / "7.lock"
    path.touch()
    real = fcntl.flock

    with ExitStack() as others:

        def flock(fd: int, operation: int) -> None:
            monkeypatch.setattr(fcntl, "flock", real)
            path.unlink()
            assert others.enter_context(held(path))
            real(fd, operation)

        monkeypatch.setattr(fcntl, "flock", flock)
        with held(path) as is_held:
            assert not is_held


def test_a_lock_that_each_holder_removes_has_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "7.lock"
    inside: list[int] = []

    def hold(number: int) -> bool:
        with held(path, 20.0, remove=True) as is_held:
            inside.append(number)
            alone = is_held and inside == [number]
            inside.remove(number)
        return alone

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(hold, range(200)))
    assert not path.exists()


def test_a_held_lock_is_refused_and_its_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "7.lock"
    with held(path):
        with held(path, remove=True) as again:
            assert not again
        assert path.exists()
    with held(path) as afterwards:
        assert afterwards


def test_a_link_at_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="PROJECT_UNWRITABLE"), held(tmp_path / "lock"):
        raise AssertionError("it was followed")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("directory", "lock"), [(0o700, 0o600), (0o755, 0o600), (0o2775, 0o660), (0o1777, 0o666)])
def test_whoever_may_write_to_the_directory_of_a_lock_may_take_it(tmp_path: Path, directory: int, lock: int) -> None:
    tmp_path.chmod(directory)
    with held(tmp_path / "lock"):
        assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == lock


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_lock_that_only_a_colleague_may_take_is_refused_with_whose_it_is(place: Path) -> None:
    lock = place / "lock"
    lock.touch(0o600)
    os.chown(place, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(Unavailable, match=r"belongs to another user \(root\).*`chmod g\+rw"), held(lock):
            raise AssertionError("it was taken")
    finally:
        os.seteuid(0)


FORK = """
import os, pathlib, sys
from workbench.system.file_lock import held
with held(pathlib.Path(sys.argv[1])) as is_held:
    print("held" if is_held else "not held", flush=True)
    if os.fork() == 0:
        print("forked", flush=True)
        sys.stdin.read()
    os._exit(0)
"""


def test_a_forked_child_does_not_keep_the_lock_of_a_process_that_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline(), parent.stdout.readline()] == [b"held\n", b"forked\n"]
        assert parent.wait() == 0
        with held(tmp_path / "lock") as is_held:
            assert is_held
