"""In a container, which allows its processes no namespaces, a box holds by the rest of its walls."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chance import SOAK, chance
from tests.confinement import filtered, test_attacks, test_ways_out
from tests.confinement.scene import PEOPLE, Scene
from tests.confinement.test_attacks import ATTACKS
from tests.confinement.test_ways_out import WAYS

pytestmark = [
    pytest.mark.skipif(platform.machine() not in filtered.REFUSED, reason="the numbers of its calls are not known"),
    pytest.mark.timeout(120 + 600 * SOAK),
    pytest.mark.long,
]
SAMPLE = 2
"""How many attacks of each kind a run tries."""

by_each_user = pytest.mark.parametrize("scene", PEOPLE, indirect=True)


def chosen(names: list[str], kind: str) -> list[str]:
    return names if SOAK else chance(kind).sample(names, SAMPLE)


def try_attack(kind: str, scene: Scene, attack: str) -> None:
    with test_attacks.supervised(scene) as supervisor:
        if kind == "reading":
            test_attacks.test_a_worker_that_reads_foreign_files_learns_nothing(scene, supervisor, attack)
        elif kind == "writing":
            test_attacks.test_a_worker_that_writes_foreign_files_changes_nothing(scene, supervisor, attack)
        else:
            test_attacks.test_files_left_by_a_worker_do_not_run_when_the_operator_looks_at_them(scene, attack)


@by_each_user
@pytest.mark.parametrize("kind", ATTACKS)
def test_attacks_on_files_fail(scenes: Callable[[int | None], Scene], scene: Scene, kind: str) -> None:
    for name in chosen(list(ATTACKS[kind]), f"{kind} {scene.user}"):
        print(name)
        try_attack(kind, replace(scenes(scene.user), system="container"), ATTACKS[kind][name])


@by_each_user
def test_ways_out_are_closed(scenes: Callable[[int | None], Scene], scene: Scene) -> None:
    for name in chosen(list(WAYS), f"ways out {scene.user}"):
        print(name)
        fresh = replace(scenes(scene.user), system="container")
        with test_ways_out.surrounded(fresh) as around:
            try:
                test_ways_out.test_a_box_closes_each_way_out_that_is_open_outside(fresh, around, WAYS[name])
            except pytest.skip.Exception as closed:
                print(closed)


def test_its_walls_are_complete_and_it_has_no_namespaces() -> None:
    script = "from workbench.confinement import abilities; found = abilities(); print(found.missing, *found.namespaces)"
    command = [sys.executable, "-I", filtered.__file__, "container", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "()\n"
