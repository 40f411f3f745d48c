"""Help, options and usage errors of the `workbench` command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Type, data
from workbench.cli import cli
from workbench.cli.global_options import OTHERS, by_subject


def test_every_command_explains_itself(run: Type) -> None:
    silent = []
    for name, command in cli.commands.items():
        ran, explained = run(name, "--help"), " ".join((command.help or "?" * 9).split())
        is_usage = ran.out.startswith(f"Usage: workbench {name}") and (ran.status, ran.err) == (0, "")
        silent += [] if is_usage and explained in " ".join(ran.out.split()) else [(name, ran)]
    assert silent == []


def test_the_command_itself_lists_all_others(run: Type) -> None:
    for asked in ("--help", "-h"):
        ran = run(asked)
        assert ran.status == 0
        _, *sections = re.split(r"^[A-Z][\w ]+:$", ran.out.partition("Show this message")[2], flags=re.MULTILINE)
        listed = [line.split()[0] for section in sections for line in section.splitlines() if line]
        assert sorted(listed) == sorted(cli.commands)
        assert len(sections) > 5
    assert run("--version").out.startswith("workbench, version ")


BAD_USAGE = [
    ["no-such-command"],
    ["tasks", "--no-such-option"],
    ["tasks", "--limit", "many"],
    ["tasks", "one", "two"],
    ["approve"],
    ["spawn", "implementer", "--env", "NO_SUCH_VARIABLE"],
    ["approve", "1", "--expires", "soon"],
    ["approve", "1", "--tool", "all"],
    ["reject"],
    ["grant", "ada"],
    ["move", "ada"],
    ["rules", "add", "night"],
    ["rules", "no-such-command"],
    ["agents", "delete"],
    ["grant", "ada", "bob", "--name", "Ada"],
    ["projects", "edit", "Lab"],
    ["contexts", "edit", "7"],
    ["contexts", "add", "Lab", "Title", "--metadata", "[]"],
    ["agent-tools", "edit", "read"],
    ["events", "--after", "1", "--before", "9"],
    ["export", "secrets"],
    ["task"],
    ["task", "one"],
    ["depend", "1"],
    ["priority", "1", "high"],
    ["tasks", "--sort", "colour"],
    ["tasks", "--status", "lost"],
    ["personas", "save", "no-such-file.md"],
    ["plan"],
    ["plan", "no-such-file.yaml"],
    ["serve", "--port", "65536"],
    ["serve", "--port", "-1"],
    ["demo", "--workers", "0"],
    ["--project", __file__, "status"],
]


def test_bad_usage_exits_with_status_2_and_names_the_mistake(run: Type) -> None:
    accepted = []
    for arguments in BAD_USAGE:
        ran, in_json = run(*arguments), run("--json", *arguments)
        says_so = re.search("^BAD_USAGE: .", ran.err, re.MULTILINE) and '"code": "BAD_USAGE"' in in_json.err
        if not says_so or {ran[:2], in_json[:2]} != {(2, "")} or json.loads(in_json.err)["code"] != "BAD_USAGE":
            accepted.append((arguments, ran, in_json))
    assert accepted == []


def test_global_options_work_after_the_name_of_a_command(
    run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    for arguments in (["projects"], ["projects", "list"], ["sessions", "--in", "Lab"]):
        assert len(data(run(*arguments, "--json"))) == 1
        assert run(*arguments, "--json") == run("--json", *arguments)
    assert run("priority", "99", "-5", "--json").err == run("--json", "priority", "99", "-5").err
    assert data(run("--json", "projects", "list", "--project", str(tmp_path))) == []
    assert data(run("--project", "/no/where", "projects", "list", "--json", "--project", str(tmp_path))) == []
    monkeypatch.setenv("WORKBENCH_PROJECT", "/no/where")
    assert data(run("tasks", "--json", "--project", str(tmp_path))) == []
    assert run("tasks", "--project", __file__).status == 2
    assert data(run("sessions", "--json", "--project", str(tmp_path))) == []


def test_a_group_without_a_command_prints_its_help(run: Type) -> None:
    ran = run()
    assert (ran.status, ran.out, "BAD_USAGE" in ran.err) == (2, "", False)
    assert ran.err.startswith("Usage: workbench ")


def test_the_option_project_is_the_directory_in_every_command() -> None:
    def below(command: click.Command) -> Iterator[click.Command]:
        yield command
        for one in getattr(command, "commands", {}).values():
            yield from below(one)

    options = [option for command in below(cli) for option in command.params if "--project" in option.opts]
    helps = {getattr(option, "help", None) or "" for option in options}
    assert [told for told in helps if not told.startswith("Root directory of the project.")] == []
    assert len(options) > len(cli.commands)  # `sql` takes further ones, too


def test_help_is_also_a_command(run: Type) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "worktrees", "create").out == run("worktrees", "create", "--help").out
    assert run("help", "statsu").status == 2


def test_every_option_has_help_and_a_name_of_its_own() -> None:
    options = [option for c in cli.commands.values() for option in c.params if isinstance(option, click.Option)]
    assert all(option.name for option in options)
    for command in cli.commands.values():
        names = [name for parameter in command.params for name in parameter.opts]
        assert len(names) == len(set(names))


def test_the_help_of_the_command_places_every_command_under_a_subject() -> None:
    assert OTHERS not in by_subject(cli.commands)
    assert by_subject(["tasks", "new"]) == {"Plans and tasks": ["tasks"], OTHERS: ["new"]}
