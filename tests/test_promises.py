"""Names in the documents exist: each command with its options, each setting, each code of an error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs.generator import ROOT
from docs.generator.reference import PACKAGES
from kernel_ext.commands import tree
from workbench.cli import cli
from workbench.cli.output import NounGroup
from workbench.state.settings import Settings

DOCUMENTS = sorted(
    {ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")} - {ROOT / "docs" / "reference.md"}
)
SPAN = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[\s$(])(%?workbench) ([a-z%].*)")
SETTINGS = re.compile(r"\bsettings?\s+((?:`\w+`(?:,\s+(?:and\s+)?|\s+(?:and|or)\s+)?)+)")
NAME = re.compile(r"[A-Z]{3,}(?:_[A-Z]+)+")
"""A code, or a variable of the environment."""
FILES = [path for top in (*PACKAGES, "data") for path in ROOT.glob(f"{top}/**/*") if path.suffix in (".py", ".yaml")]
DEFINITIONS = {
    word
    for path in FILES
    if path.parent.name in ("definitions", "definition_files", "providers")
    for word in re.findall(r"\w+", path.read_text("utf-8"))
}
"""Definitions of agents have settings of their own."""
KNOWN = {
    *(name for path in FILES for name in NAME.findall(path.read_text("utf-8"))),
    *(f"WORKBENCH_{name.upper()}" for name in Settings.model_fields),
    *(f"KOI_MCP_AGENT_{name}" for name in ("NAME", "BASE_URL")),  # of its configuration's keys
}


def texts(document: Path) -> Iterator[str]:
    """The code of a document: what stands in backticks, and the lines of blocks."""
    text = document.read_text("utf-8")
    yield from SPAN.findall(BLOCK.sub("", text))
    for _, block in BLOCK.findall(text):
        yield from block.replace("\\\n", " ").splitlines()


def unknown(shell: str, line: str) -> str | None:
    """The first part of a command line that does not exist."""
    group: click.Command = tree() if shell == "%workbench" else cli
    words = shlex.split(re.split(r"\s[|#>&…]|;", line)[0].replace("…", ""), comments=True)
    known = {"--project", "--json", "--help", "-h"}
    for word in words:
        if word == "--" or (word == "help" and group.name in ("workbench", "root")):
            return None
        if isinstance(group, NounGroup) and word.startswith("-") and word not in known:
            group = group.commands["list"]  # it is what the group does without the name of a command
        if isinstance(group, click.Group) and not word.startswith("-"):
            found = group.commands.get(word)
            if found is None:
                return word if re.fullmatch(r"[a-z-]+", word) and not group.invoke_without_command else None
            group = found
        elif word.startswith("--") or re.fullmatch(r"-[a-zA-Z]", word):
            options = {name for option in group.params for name in (*option.opts, *option.secondary_opts)}
            if word.partition("=")[0] not in options | known:
                return word
    return None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_command_option_setting_and_code_that_a_document_names_exists(document: Path) -> None:
    missing = []
    for text in texts(document):
        for shell, line in COMMAND.findall(text):
            try:
                part = unknown(shell, line)
            except ValueError:  # a quote that is closed in another line
                continue
            missing += [f"{shell} {line}: {part}"] if part else []
        missing += [text] if NAME.fullmatch(text) and text not in KNOWN else []
    for names in SETTINGS.findall(document.read_text("utf-8")):
        missing += [
            name for name in re.findall(r"`(\w+)`", names) if name not in {*Settings.model_fields, *DEFINITIONS}
        ]
    assert missing == []
