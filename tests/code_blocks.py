"""The code blocks of the README and the documentation, as printed.

A comment directly above a block, `<!-- not run by a test: … -->`, says why no test runs it. Blocks without a language
are no code.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.generator import ROOT
from tests.conftest import Ran, typed

_PART = re.compile(
    r"^#+ (?P<heading>[^\n]+)$"
    r"|(?:^<!-- not run by a test: (?P<reason>[^>]+) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$"
    r"|^```\n.*?^```$",
    re.MULTILINE | re.DOTALL,
)
SHELLS_OWN = {"|", "<", ">", ">>", "&&", ";", "&"}
"""What only a shell understands; other commands of Workbench run in this process."""


@dataclass(frozen=True)
class CodeBlock:
    """A block of code, and the heading that it is below.

    `reason`: why no test runs it.
    """

    path: Path
    line: int
    heading: str
    language: str
    code: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @property
    def is_cell(self) -> bool:
        """Whether it is for a notebook that has loaded the extension."""
        return self.language == "python" and re.match(r"%|@?wb\b", self.code) is not None

    @property
    def commands(self) -> list[str]:
        """The commands of a block that shows a terminal; comments at their ends are the shell's."""
        return [line.removeprefix("$ ") for line in self.code.splitlines()]


def code_blocks() -> list[CodeBlock]:
    """All blocks of code, in order."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "data" / "penguins" / "README.md"]
    return [block for page in pages for block in blocks_of(page, page.read_text("utf-8"))]


def blocks_in(page: Path, language: str) -> list[CodeBlock]:
    """The blocks of a page that are in a language, in order."""
    return [block for block in blocks_of(page, page.read_text("utf-8")) if block.language == language]


def environment(**more: str) -> dict[str, str]:
    """The environment of a person in no project who has activated the virtual environment."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "COV_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return plain | {"PATH": path, "WORKBENCH_CONFIG": os.environ["WORKBENCH_CONFIG"]} | more


def run_commands(commands: Iterable[str], cwd: Path) -> list[str]:
    """The output of commands that a person types one after another; a failing one fails the test. Blocks."""
    printed = []
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[0] == "workbench" and not SHELLS_OWN & set(words):
            with contextlib.chdir(cwd):
                ran = typed(*words[1:])
        else:
            how = ["/bin/sh", "-ec", command]
            done = subprocess.run(how, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
            ran = Ran(done.returncode, done.stdout, done.stderr)
        assert ran.status == 0, f"{command}\n{ran.out}{ran.err}"
        printed.append(ran.out)
    return printed


def blocks_of(path: Path, text: str) -> Iterator[CodeBlock]:
    """The blocks of code of a page."""
    heading = ""
    for part in _PART.finditer(text):
        if part["heading"]:
            heading = part["heading"]
        elif part["language"]:
            line = text.count("\n", 0, part.start("code"))
            yield CodeBlock(path, line, heading, part["language"], part["code"], part["reason"])
