"""What is meant by an id, a name or a misspelt name, and errors in the words of the command line and of a notebook."""

from __future__ import annotations

import pytest

from tests.given import refused
from workbench.rules.naming import resolve_ref
from workbench.rules.spelling import LONGEST, similar
from workbench.rules.wording import in_commands, in_magics

NAMES = ["claim_task", "create_task", "create_team", "list_tasks", "title", "agent_id"]


def test_an_id_goes_before_a_name_and_a_name_means_the_only_one_that_has_it() -> None:
    one, two, named_as_an_id = {"id": "1", "name": "x"}, {"id": "2", "name": "x"}, {"id": "3", "name": "1"}
    assert resolve_ref([named_as_an_id, one], "1", "thing") is one
    assert resolve_ref([two], "x", "thing") is two
    assert resolve_ref([], "x", "thing") is None
    error = refused("AMBIGUOUS_NAME", resolve_ref, [one, two], "x", "thing")
    assert error.message.startswith("More than one thing is named 'x'. ")
    assert error.message.endswith(" 1, 2.")
    assert error.details == {"candidates": ["1", "2"]}


@pytest.mark.parametrize(
    ("word", "meant"),
    {
        "clam_task": "claim_task, create_task or list_tasks",
        "titel": "title",
        "Title": "title",
        "agentid": "agent_id",
        "task_create": "create_task",
        "create-task": "create_task",
        "zzz": "",
        "": "",
        "create_task" * LONGEST: "",
    }.items(),
)
def test_the_nearest_names_are_suggested(word: str, meant: str) -> None:
    assert similar(word, NAMES) == meant
    assert similar(word, []) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Run `workbench koi join URL`, or `workbench tasks`", "Run `%workbench koi join URL`, or `%workbench tasks`"),
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
        ("'list_tasks' or no_word", "'list_tasks' or no_word", "'list_tasks' or no_word"),
        (
            "join_network(first_contact_rid=…)",
            "`workbench koi join URL --rid RID`",
            "`%workbench koi join URL --rid RID`",
        ),
    ],
)
def test_an_operation_that_an_error_names_is_the_command_that_runs_it(text: str, shell: str, notebook: str) -> None:
    assert (in_commands(text), in_commands(text, "%workbench")) == (shell, notebook)
