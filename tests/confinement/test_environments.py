"""Environments of Python: what of them and of their interpreter a box has to open."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

from tests.given import refused
from workbench.confinement import environments


def test_a_virtual_environment_needs_the_installation_it_was_made_with_wherever_that_is(tmp_path: Path) -> None:
    base = tmp_path / "home" / "python-3.12.4"
    for part in ("bin", "lib", "include", "secrets"):
        (base / part).mkdir(parents=True)
    (base / "bin" / "python3.12").touch(mode=0o755)
    (tmp_path / "home" / "python-3.12").symlink_to(base)
    place = tmp_path / "project" / ".venv"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(tmp_path / "home" / "python-3.12" / "bin" / "python3.12")
    (place / "pyvenv.cfg").write_text(f"home = {tmp_path}/home/python-3.12/bin\nversion = 3.12.4\n")
    environment = environments.find(place)
    assert set(environment.base) == {base / "bin", base / "lib", base / "include"}
    assert environment.programs == place / "bin"
    assert environment.variables["VIRTUAL_ENV"] == str(place)
    assert environment.variables["UV_NO_SYNC"] == "1"


def test_one_of_conda_is_complete_and_has_its_own_variables(tmp_path: Path) -> None:
    place = tmp_path / "lab"
    for part in ("conda-meta", "bin"):
        (place / part).mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    environment = environments.find(place)
    assert (environment.is_conda, environment.base) == (True, ())
    assert environment.variables == {"CONDA_PREFIX": str(place), "CONDA_DEFAULT_ENV": "lab"}


def test_what_is_none_or_has_lost_its_interpreter_is_refused_with_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "env"
    assert "is no environment" in refused("ENVIRONMENT_NOT_FOUND", environments.find, place).message
    venv.create(place, symlinks=True)
    for name in ("python", "python3"):
        (place / "bin" / name).unlink()
    (place / "bin" / "python").symlink_to("/nowhere/bin/python3")
    error = refused("ENVIRONMENT_BROKEN", environments.find, place)
    assert error.details["interpreter"] == "/nowhere/bin/python3"
    (place / "bin" / "python").unlink()
    (place / "bin" / "python").mkdir()
    refused("ENVIRONMENT_BROKEN", environments.find, place)


def test_installing_a_package_changes_the_stamp(tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True)
    before = environments.stamp(tmp_path)
    (packages,) = tmp_path.glob("lib/python3*/site-packages")
    (packages / "new").mkdir()
    os.utime(packages, (1, 1))
    assert environments.stamp(tmp_path) != before
