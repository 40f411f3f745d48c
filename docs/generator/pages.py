"""The generated files of `docs/`: the reference, parts of pages that are else written by hand, and JSON Schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from docs.generator import ROOT, architecture, commands, reference
from workbench.rules.definitions import schema

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference.md"
MARK = "<!-- What follows is generated from the code by `make docs`. -->\n"
"""The line of a page below which nothing is written by hand."""


def _page(path: Path, part: Callable[[], str]) -> str:
    """A page with a generated part: what is written by hand as it is, the rest anew."""
    written, line, _ = path.read_text("utf-8").partition(MARK)
    return f"{written}{line}\n{part()}\n"


def _schema(file: schema.DefinitionFile) -> str:
    return json.dumps(schema.of_file(file), indent=2, ensure_ascii=False) + "\n"


_PARTS = {DOCS / "architecture.md": architecture.structure, DOCS / "commands.md": commands.manual}
PAGES: Mapping[Path, Callable[[], str]] = {
    REFERENCE: reference.page,
    **{path: partial(_page, path, part) for path, part in _PARTS.items()},
    **{
        DOCS / f"{file.name.lower().replace('_', '-')}.schema.json": partial(_schema, file)
        for file in schema.DefinitionFile
    },
}
"""The text of each file."""


@cache
def documented_codes() -> Mapping[str, frozenset[str]]:
    """The codes that each operation can answer with, as the page says: to read it is faster than to make it anew."""
    table = REFERENCE.read_text("utf-8").partition("## Errors by operation")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)`", line) for line in table.splitlines() if line.startswith("| `")]
    return {operation: frozenset(codes) for operation, *codes in rows}
