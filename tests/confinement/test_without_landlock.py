"""A kernel without Landlock or with an old one: it is reported or refused, and nothing pretends to be confined."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.confinement import filtered
from workbench.confinement import abilities, landlock
from workbench.confinement.abilities import of
from workbench.confinement.box import box_for_worktree
from workbench.errors import BadInput
from workbench.services.processes.sandbox import confinement_of
from workbench.state.settings import Settings

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters system calls"),
    pytest.mark.timeout(120),
]


def on_an_old_kernel(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", filtered.__file__, "old-kernel", *command],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


DOCTOR = (sys.executable, "-m", "workbench.cli", "--json", "doctor")
ASK = """
import json
from pathlib import Path
from workbench.confinement import abilities
from workbench.errors import Unavailable
from workbench.services.processes.sandbox import box, confinement_of
from workbench.state.settings import Settings
try:
    here = Path.cwd()
    made = box(Settings(project=here), worktree=here, git_dir=here, objects=(), scratch=here / "scratch")
    held = confinement_of(Settings(project=here))
    print(json.dumps([abilities().abi, made.enforce, held.enforced, held.missing, made.argv(["cat", "/etc/hostname"])]))
except Unavailable as error:
    print(json.dumps(error.as_dict()))
"""


def row(said: str, what: str) -> dict[str, str]:
    found: dict[str, str] = next(row for row in json.loads(said) if row["what"] == what)
    return found


@pytest.mark.long
@pytest.mark.parametrize(("mode", "status", "state"), [("auto", 0, "warning"), ("required", 1, "missing")])
def test_doctor_reports_missing_confinement(repository: Path, mode: str, status: int, state: str) -> None:
    done = on_an_old_kernel(*DOCTOR, cwd=repository, WORKBENCH_CONFINEMENT=mode)
    found = row(done.stdout, "confinement")
    assert (done.returncode, found["state"]) == (status, state), done.stderr
    assert mode == "required" or found["says"].startswith("Workers are not confined: this system has no Landlock")


@pytest.mark.long
def test_boxes_without_landlock_are_not_enforced_and_say_so(repository: Path) -> None:
    done = on_an_old_kernel(sys.executable, "-c", ASK, cwd=repository)
    abi, enforce, enforced, missing, argv = json.loads(done.stdout)
    assert (abi, enforce, enforced) == (0, False, False)
    assert "a worker can read and write whatever its user can" in missing
    outside = on_an_old_kernel(*argv[: argv.index("--")], "--", "cat", "/proc/1/status", cwd=repository)
    assert outside.returncode == 0, outside.stderr


@pytest.mark.long
def test_required_confinement_without_landlock_is_refused(repository: Path) -> None:
    done = on_an_old_kernel(sys.executable, "-c", ASK, cwd=repository, WORKBENCH_CONFINEMENT="required")
    said = json.loads(done.stdout)
    assert said["code"] == "CONFINEMENT_UNAVAILABLE"
    assert "this system has no Landlock" in said["message"]


@pytest.mark.skipif(not abilities().abi, reason="this system has no Landlock")
def test_a_command_that_was_to_be_confined_does_not_run(tmp_path: Path) -> None:
    box = box_for_worktree(worktree=tmp_path, git_dir=tmp_path, objects=(), scratch=tmp_path / "scratch")
    done = on_an_old_kernel(*box.argv(["sh", "-c", "echo ran"]), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (125, "")
    free = on_an_old_kernel(*replace(box, enforce=False).argv(["sh", "-c", "echo ran"]), cwd=tmp_path)
    assert free.stdout == "ran\n"


# Older versions of Landlock


def test_an_old_landlock_lists_the_protections_of_later_versions_as_missing() -> None:
    newest = of(7, filtered=True)
    for abi in range(8):
        found = of(abi, filtered=True)
        assert len(found.enforced) + len(found.missing) == len(newest.enforced)
        assert found.complete == (abi >= 6)
        assert newest.enforced[: len(found.enforced)] == found.enforced or abi < 6
        how = "confined (" if abi >= 6 else "confined in part" if abi else "not"
        assert found.summary.startswith(f"Workers are {how}")
    unfiltered = of(7, filtered=False)
    assert (unfiltered.complete, "UNIX sockets" in unfiltered.summary) == (False, True)


def test_only_rights_that_the_kernel_knows_are_requested() -> None:
    for abi, rights in {1: 13, 2: 14, 3: 15, 4: 15, 5: 16, 6: 16, 7: 16}.items():
        fs, net, scope = landlock.handled(abi)
        assert (fs.bit_length(), bool(net), bool(scope)) == (rights, abi >= 4, abi >= 6)


@pytest.mark.skipif(not abilities().abi, reason="this system has no Landlock")
@pytest.mark.parametrize("abi", range(1, abilities().abi + 1))
def test_a_box_holds_with_the_rights_of_an_older_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abi: int
) -> None:
    monkeypatch.setattr("workbench.confinement.box.abilities", lambda: of(abi, filtered=True))
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "outside").write_text("outside")
    box = box_for_worktree(worktree=work, git_dir=work, objects=(), scratch=tmp_path / "scratch")
    script = "cat ../outside; echo x > ../new; mkdir d; echo fine > d/x; cat d/x; rm d/x; rmdir d"
    done = subprocess.run(
        box.argv(["sh", "-c", script]), cwd=work, env=box.environment(os.environ), capture_output=True, text=True
    )
    assert done.stdout == "fine\n"
    assert not (tmp_path / "new").exists()


# The settings


def test_the_setting_decides_whether_confinement_is_enforced(tmp_path: Path) -> None:
    enforced = {"auto": bool(abilities().abi), "off": False} | ({"required": True} if abilities().complete else {})
    for mode, is_enforced in enforced.items():
        found = confinement_of(Settings(project=tmp_path, confinement=mode))
        assert (found.enforced, bool(found.missing)) == (is_enforced, mode == "off" or not abilities().complete)


@pytest.mark.parametrize("ports", ["http", "80,", "-1", "80 443", "999999"])
def test_ports_are_numbers(tmp_path: Path, ports: str) -> None:
    with pytest.raises(BadInput, match="BAD_SETTINGS: confinement_connect"):
        Settings(project=tmp_path, confinement_connect=ports)
