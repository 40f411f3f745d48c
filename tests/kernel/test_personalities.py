"""`wb.personalities`, in a kernel that serves a project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kernel.conftest import Kernel

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

ADD = """
@wb.tool(trait="ada", read_only=True)
def add(a: int, b: int = 0) -> int:
    'Add numbers.'
    return a + b
"""


@pytest.fixture
def running(running: Kernel) -> Kernel:
    running.run('wb.call("join_network", name="lab")')
    return running


def test_a_profile_is_published_shown_changed_and_withdrawn(running: Kernel) -> None:
    running.run('ada = wb.personalities.publish("ada", traits={"mood": "calm", "description": "Counts penguins"})')
    assert running.run("list(wb.personalities), len(wb.personalities)") == "(['ada'], 1)"
    heads, row = running.run("wb.personalities").splitlines()
    assert heads.split() == ["name", "version", "tools", "node", "state"]
    assert re.fullmatch(r"ada 1\.0 lab·[0-9a-f]{6} own", " ".join(row.split()))
    [line] = running.fail('ada.mood = "curious"')["traceback"]
    assert line.startswith("FIELD_READ_ONLY: Personality.mood cannot be assigned: ")
    assert line.endswith("update_traits changes traits.")
    running.run('wb.personalities["ada"].update_traits(mood="curious", age=3)')
    assert running.run("ada.traits") == "{'age': 3, 'description': 'Counts penguins', 'mood': 'curious'}"
    changed = [line.split() for line in running.run("ada.diff()").splitlines()[1:]]
    assert changed == [["age", "added", "3"], ["mood", "value", "calm", "curious"]]
    assert running.run("ada.versions, ada.origin['owner_name']") == f"(['1.0'], '{row.split()[2]}')"
    assert "curious" in running.run("ada")
    assert [line.split()[2] for line in running.run("ada.changes").splitlines()[1:]] == ["UPDATE", "NEW"]
    running.run("ada.withdraw()")
    assert running.run('"ada" in wb.personalities') == "False"
    assert running.fail('wb.personalities["ada"]')["evalue"].startswith("PERSONALITY_NOT_FOUND: ")


def test_a_cell_is_a_trait(running: Kernel) -> None:
    running.run(ADD)
    wait = 'wb.call("list_events", kinds=["personality.*"], wait_seconds=30)["events"][0]["subject"]'
    assert running.run(wait) == "'personality:ada/1.0'"
    assert running.run('list(wb.personalities["ada"].tools)') == "['add']"
    assert "Add numbers." in running.run('wb.personalities["ada"]')


def test_profiles_wait_until_there_is_a_network(kernel: Kernel, repository: Path) -> None:
    kernel.serve(repository)
    assert "No personalities are known" in kernel.run("wb.personalities")
    kernel.run('wb.personalities.publish("ada", traits={"mood": "calm"})')
    assert "Not published yet: ada." in kernel.run("wb.personalities")
    assert kernel.run('wb.personalities["ada"].traits') == "{'mood': 'calm'}"
    assert "ada" in kernel.run('wb.personalities["ada"]')
    kernel.run("%workbench stop")
