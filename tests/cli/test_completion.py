"""Shells complete the words of a command: `eval "$(_WORKBENCH_COMPLETE=bash_source workbench)"`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from tests.cli.conftest import Type
from workbench.cli import cli


def completions(*words: str) -> set[str]:
    """The completions that Tab offers after the words; the last one is incomplete."""
    *complete, incomplete = words
    shell = BashComplete(cli, {}, "workbench", "_WORKBENCH_COMPLETE")
    return {item.value for item in shell.get_completions(complete, incomplete)}


OFFERED = {
    ("wor",): {"worker", "worktrees"},
    ("worktrees", "cr"): {"create"},
    ("worktrees", "create", "--b"): {"--branch"},
    ("export", "agents", "--format", ""): {"csv", "json", "jsonl", "parquet"},
    ("task", ""): {"1", "2"},
    ("cancel", "2"): {"2"},
    ("depend", "1", ""): {"1", "2"},
    ("assign", "1", "a"): {"ada"},
    ("tasks", "--plan", "p"): {"penguins"},
    ("export-plan", ""): {"penguins"},
    ("export", "work"): {"worktrees"},
    ("report", "comparison", "--by", "plan"): {"plan"},
    ("spawn", "impl"): {"implementer"},
    ("tasks", "--persona", "rev"): {"reviewer"},
    ("sessions", "add", ""): {"lab"},
    ("grant", "ada", "--session", ""): {"today"},
    ("agent", "a"): {"ada"},
    ("reject", ""): {"2"},
    ("runs", "show", ""): {"1", "baseline"},
    ("runs", "compare", "1", "base"): {"baseline"},
    ("views", "att"): {"attempts"},
    ("report", "wait"): {"waits"},
    ("tools", "show", "create_ta"): {"create_task"},
    ("call", "create_tasks"): {"create_tasks"},
    ("worktrees", "create", ""): set(),
    ("logs", "nobody"): set(),
}


@pytest.mark.long
@pytest.mark.usefixtures("penguins")
def test_commands_options_and_names_of_the_project_are_completed(run: Type) -> None:
    for words in (
        ("call", "register", "name=Ada"),
        ("approve", "Ada", "--id", "ada"),
        ("call", "register", "name=Eve"),
        ("projects", "add", "lab"),
        ("sessions", "add", "lab", "today"),
        ("call", "start_run", "name=baseline"),
    ):
        assert run(*words).status == 0
    assert {words: completions(*words) for words in OFFERED} == OFFERED


def test_completion_outside_a_project_offers_and_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_PROJECT", str(tmp_path))
    assert completions("task", "") == set()
    assert list(tmp_path.iterdir()) == []


def test_completion_offers_no_word_that_is_unsafe_in_a_shell_or_terminal(run: Type) -> None:
    for name in ("$(id)", "`id`", "a;id", "fine"):
        assert run("call", "start_run", f"name={name}").status == 0
    assert run("call", "create_task", "title=Clear\u009b2J\x1b[2J", "persona_id=tester").status == 0
    assert completions("runs", "show", "") == {"fine", "1", "2", "3", "4"}
    shell = BashComplete(cli, {}, "workbench", "_WORKBENCH_COMPLETE")
    assert [task.help and task.help.isprintable() for task in shell.get_completions(["task"], "")] == [True]
