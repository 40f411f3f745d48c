"""docs/your_repository.md: its settings count, and its commands run in a repository."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.git.parts import commit
from tests.test_docs import ROOT
from workbench.state.settings import Settings

PAGE = (ROOT / "docs" / "your_repository.md").read_text("utf-8")
ELSEWHERE = {"cd", "init", "start"}
"""What tests of their own begin with."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_settings_of_the_page_count(tmp_path: Path) -> None:
    for block in blocks("toml"):
        values = tomllib.loads(block)
        settings = Settings(project=tmp_path, **values)
        assert values.keys() <= settings.model_fields_set, block


@pytest.mark.long
def test_the_commands_of_the_page_run(run: Type, repository: Path) -> None:
    commit(repository, {"test_it.py": "def test_it():\n    pass\n"})
    for line in "".join(blocks("console")).splitlines():
        program, *words = shlex.split(line.removeprefix("$ "), comments=True)
        if not ELSEWHERE & {program, *words[:1]}:
            ran = run(*words)
            assert (line, ran.status) == (line, 0), ran.err
