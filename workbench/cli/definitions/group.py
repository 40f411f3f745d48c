"""The group `define`, and what its commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import Fn, Note, NounGroup, Text
from workbench.errors import BadInput, NotFound, unreadable_file
from workbench.rules.definitions.names import fitting

STDIN = "-"
FOLDER = "./agents"
"""Where definitions are created if no path is given."""


@root.group(cls=NounGroup)
def define() -> None:
    """Definitions of agents: list, show, create, clone, delete, …

    A definition is a directory that says who does the work: prompt, rules, references, model, tools and MCP servers.
    The personas say what kind of work is taken. `spawn --definition NAME` starts an agent with a definition.
    """


class SectionGroup(NounGroup):
    """Commands about one section of a definition; the name of a definition alone lists the section."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        is_alone = bool(args) and all(word.startswith("-") for word in args[1:2])
        if is_alone and not ctx.resilient_parsing and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


target: Callable[[Fn], Fn] = click.argument("target", metavar="AGENT", type=offers.definition)
"""The argument of commands about one definition."""
text_file = click.Path(path_type=Path, allow_dash=True, dir_okay=False)
"""A file to read, or ``-`` for standard input."""


def new_path(name: str) -> str:
    """Where a definition with a name is created if no path is given: letters lose their accents there.

    Raises:
        UsageError: nothing of the name can be in a path.
    """
    part = fitting(name) if re.search(r"[^\x20-\x7e]", name) else name
    if part.startswith("unnamed"):
        raise click.UsageError(f"No path can be made of the name {name!r}. Give one with --path.")
    return f"{FOLDER}/{part}"


@view("DefinitionChanged")
def done(change: Mapping[str, Any]) -> Note:
    """The note about a change that was made, with its warnings."""
    return Note("\n".join([change["message"], *change.get("warnings", ())]), change)


def item(answer: Mapping[str, Any], noun: str, arguments: Mapping[str, Any]) -> Any:
    """The item of a definition in the answer about one; `noun` is its key there, such as ``rule``.

    Raises:
        NotFound: ``NOT_FOUND``.
    """
    if answer[noun] is None:
        name = arguments[f"{noun}Name"]
        raise NotFound(
            "NOT_FOUND", f"The definition has no {noun} {name!r}. `workbench define {noun}s AGENT` lists them."
        )
    return answer[noun]


def as_yaml(value: Mapping[str, Any], answer: Mapping[str, Any]) -> Text:
    """A part of an answer as YAML."""
    from workbench.rules.yaml_text import write  # imports libraries that no other command needs

    return Text(write(value).rstrip("\n"), answer)


def read_text(file: Path) -> str:
    """The text of a file, or of standard input for ``-``.

    Raises:
        BadInput: ``FILE_UNREADABLE``.
    """
    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            return str(opened.read())
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_file(file, error) from None


def read_mapping(file: Path) -> dict[str, Any]:
    """The mapping that a file contains, in YAML or JSON.

    Raises:
        BadInput: ``FILE_UNREADABLE``: also if it contains something else.
    """
    from workbench.rules.yaml_text import InvalidYaml, load

    try:
        content = load(read_text(file))
    except InvalidYaml as error:
        raise BadInput("FILE_UNREADABLE", f"{file} is neither YAML nor JSON: {error}.") from None
    if not isinstance(content, dict):
        raise BadInput("FILE_UNREADABLE", f"{file} does not contain a mapping, such as `name: …`.")
    return content


UNSET = {
    **dict.fromkeys(("allowedTools", "disallowedTools", "permissionMode"), "the profile's"),
    **dict.fromkeys(("maxOutputTokens", "temperature", "topP"), "the provider's"),
    "maxChatTurns": "20 in a conversation, else the program's",
}
"""The values of settings that are not set."""


def setting_rows(settings: Mapping[str, Any]) -> list[list[Any]]:
    """Settings as rows of a table: what is not set is what applies instead."""
    return [[key, f"({UNSET[key]})" if value is None and key in UNSET else value] for key, value in settings.items()]
