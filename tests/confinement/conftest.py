"""Scenes, for whoever runs the tests and, where that is root, for an ordinary user as well."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.confinement.scene import Scene, make
from tests.users import NOBODY
from workbench.confinement import abilities

WHO = [pytest.param(None, id="by whoever runs the tests")]
if os.getuid() == 0:
    WHO.append(pytest.param(NOBODY, id="by an ordinary user"))


@pytest.fixture(params=WHO)
def scene(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A scene in a directory that an ordinary user can reach, which pytest's own cannot be."""
    if not abilities().complete:
        pytest.skip(abilities().summary)
    root = Path(tempfile.mkdtemp(prefix="workbench-scene-", dir="/tmp"))
    root.chmod(0o755)
    monkeypatch.setenv("HOME", str(root / "home"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    try:
        yield make(root, request.param)
    finally:
        shutil.rmtree(root, ignore_errors=True)
