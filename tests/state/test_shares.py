"""Shares of a project's server: their holders, and the effects when one leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.errors import Unavailable
from workbench.state.shares import Departure, held, holders

HOLDER = """
import pathlib, sys
from workbench.state.shares import held
with held(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


OTHERS = (7,)
DEPARTURES = {
    # served, others, asked to end workers: hands over, ends workers, needs a server
    (True, (), False): (False, False, False),
    (True, (), True): (False, True, False),
    (True, OTHERS, False): (True, False, False),
    (True, OTHERS, True): (True, False, False),
    (False, (), False): (False, False, False),
    (False, (), True): (False, True, True),
    (False, OTHERS, False): (False, False, False),
    (False, OTHERS, True): (False, False, False),
}


def test_workers_end_only_with_the_last_one_that_leaves_and_servers_go_on_with_others() -> None:
    departures = {how: Departure(*how) for how in DEPARTURES}
    assert {how: (d.hands_over, d.ends_workers, d.needs_server) for how, d in departures.items()} == DEPARTURES


def test_a_process_that_leaves_learns_who_is_left(tmp_path: Path) -> None:
    with held(tmp_path) as first, held(tmp_path) as second:
        assert holders(tmp_path) == [os.getpid()] * 2
        assert first.leave(served=True, end_workers=True).others == (os.getpid(),)
        assert second.leave(served=False, end_workers=True).others == ()
        assert first.leave(served=True, end_workers=True).others == ()
    assert list(tmp_path.iterdir()) == []


def test_at_least_one_of_many_concurrent_leavers_is_the_last(tmp_path: Path) -> None:
    for _ in range(20):
        with held(tmp_path) as a, held(tmp_path) as b, held(tmp_path) as c, ThreadPoolExecutor(3) as pool:
            left = pool.map(lambda share: share.leave(served=False, end_workers=True).others, (a, b, c))
            assert () in list(left)


@pytest.mark.timeout(60)
def test_a_killed_process_frees_its_share(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert holders(tmp_path) == [process.pid]
        process.kill()
        process.wait()
        assert holders(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "shares").write_text("in the way")
    with pytest.raises(Unavailable, match="PROJECT_UNWRITABLE"), held(tmp_path / "shares"):
        raise AssertionError("it was held")
