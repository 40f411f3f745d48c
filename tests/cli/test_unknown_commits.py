"""A sweep whose runs get no commit says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from workbench.cli.sweeps.running import _say_if_commits_are_unknown
from workbench.state.settings import Settings


def test_a_sweep_says_why_its_runs_get_no_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(project=tmp_path)
    _say_if_commits_are_unknown(settings)
    assert capsys.readouterr().err == ""  # without a repository, nobody expects one
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".git" / "config").write_text("[core\n")
    _say_if_commits_are_unknown(settings)
    assert capsys.readouterr().err.startswith("The runs are recorded without a commit: ")
