"""Errors of operations in the words of the command line and of a notebook."""

from __future__ import annotations

import pytest

from workbench.rules.wording import in_commands, in_magics


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Run `workbench koi join URL`, or `workbench tasks`.",
            "Run `%workbench koi join URL`, or `%workbench tasks`.",
        ),
        ("`workbench serve`, `workbench demo` and `workbench worker` stay", None),
        ("`workbench` alone, workbench tasks and `workbench --help` stay", None),
    ],
)
def test_commands_of_the_shell_that_a_notebook_has_are_magics(text: str, said: str | None) -> None:
    assert in_magics(text) == (said or text)


@pytest.mark.parametrize(
    ("text", "shell", "notebook"),
    [
        ("Use list_tasks.", "Use `workbench tasks`.", "Use `%workbench tasks`."),
        ("Use `get_task` again", "Use `workbench task` again", "Use `%workbench task` again"),
        ("See `workbench tasks`", "See `workbench tasks`", "See `%workbench tasks`"),
        ("call with update=true", "give --update", "give --update"),
        ("with despite_gates=true", "with --despite-gates", "with --despite-gates"),
        (
            "'list_tasks' and no_such_word stay",
            "'list_tasks' and no_such_word stay",
            "'list_tasks' and no_such_word stay",
        ),
        (
            "join_network(first_contact_rid=…) again",
            "`workbench koi join URL --rid RID` again",
            "`%workbench koi join URL --rid RID` again",
        ),
    ],
)
def test_an_operation_that_an_error_names_is_the_command_that_runs_it(text: str, shell: str, notebook: str) -> None:
    assert (in_commands(text), in_commands(text, "%workbench")) == (shell, notebook)
