"""The users as whom attacks are tried: whoever runs the tests and, if that is root, an ordinary user as well."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

NOBODY = 65_534
"""The number of an ordinary user."""
USERS = [
    pytest.param(os.geteuid(), id="as-this-user"),
    pytest.param(
        NOBODY, id="as-nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
    ),
]
SYSTEM_PYTHON = next(filter(None, map(shutil.which, ("/usr/bin/python3", "python3"))), sys.executable)


@dataclass(frozen=True)
class Python:
    """An interpreter that a user may run, with Workbench.

    Args:
        environment: the variables it needs to find Workbench.
    """

    executable: str
    environment: Mapping[str, str]


@functools.cache
def python_of(user: int) -> Python:
    """The Python of the tests; for a user who cannot reach that, the system's, if it is of the same version.

    Skips the test if there is none.
    """
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    path = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *packages])}
    own = Python(sys.executable, {})
    for python in (own, Python(SYSTEM_PYTHON, path)):
        if _finds_workbench(python, user):
            return python
    pytest.skip("the other user can reach no Python that has Workbench")


def ordinary_user() -> int:
    """An ordinary user who can run Workbench, or else whoever runs the tests."""
    try:
        python_of(NOBODY)
    except pytest.skip.Exception:
        return os.geteuid()
    return NOBODY


def _finds_workbench(python: Python, user: int) -> bool:
    code = f"import sys, workbench.app, workbench.cli; assert sys.version_info[:2] == {sys.version_info[:2]}"
    environment = {"PATH": os.defpath, **python.environment}
    try:
        done = subprocess.run(
            [python.executable, "-c", code], cwd="/", env=environment, user=user, group=user, capture_output=True
        )
    except PermissionError:  # also who is not root, and cannot be another user
        return False
    return done.returncode == 0
