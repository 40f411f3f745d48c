"""Scenes, for whoever runs the tests and, where that is root, for an ordinary user as well."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.confinement.scene import BOXES, Scene, make
from workbench.confinement import abilities


@pytest.fixture(scope="session")
def scenes() -> Iterator[Callable[[int | None], Scene]]:
    """Scenes, by who works there: each is made once, and from then on put back as it was.

    They lie in directories that an ordinary user can reach, which pytest's own cannot be.
    """
    made: dict[int | None, Path] = {}

    def as_new(user: int | None) -> Scene:
        place = made.get(user)
        if place is None:
            place = made[user] = Path(tempfile.mkdtemp(prefix="workbench-scene-", dir="/tmp"))
            place.chmod(0o755)
            make(_root(place), user)
            _root(place).rename(place / "kept")
        shutil.rmtree(_root(place), ignore_errors=True)
        subprocess.run(["cp", "-a", place / "kept", _root(place)], check=True)
        return Scene(_root(place), user)

    yield as_new
    for place in made.values():
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(params=BOXES)
def scene(
    request: pytest.FixtureRequest, scenes: Callable[[int | None], Scene], monkeypatch: pytest.MonkeyPatch
) -> Scene:
    """A scene as new, in which who runs the tests is at home."""
    if not abilities().complete:
        pytest.skip(abilities().summary)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    user, namespaces = request.param
    found = replace(scenes(user), namespaces=namespaces)
    monkeypatch.setenv("HOME", str(found.home))
    return found


def _root(place: Path) -> Path:
    return place / "scene"
