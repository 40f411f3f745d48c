"""Shells complete the words of a command: `eval "$(_WORKBENCH_COMPLETE=bash_source workbench)"`."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from workbench.cli import cli


def completions(*words: str) -> set[str]:
    """What Tab offers after the words; the last one is incomplete."""
    *complete, incomplete = words
    shell = BashComplete(cli, {}, "workbench", "_WORKBENCH_COMPLETE")
    return {item.value for item in shell.get_completions(complete, incomplete)}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("wor",), {"worker", "worktrees"}),
        (("worktrees", "cr"), {"create"}),
        (("worktrees", "create", "--b"), {"--branch"}),
        (("export", "agents", "--format", ""), {"csv", "json"}),
    ],
)
def test_words_are_completed(words: tuple[str, ...], offered: set[str]) -> None:
    assert completions(*words) == offered
