"""What a question takes along, as parts of its text: files, and what a notebook has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from workbench.errors import BadInput, unreadable_file
from workbench.present.inert import fenced

MOST = 200_000
"""Characters of a question with all that it takes along."""
_LANGUAGES = {".py": "python", ".md": "markdown", ".yml": "yaml", ".sh": "bash", ".js": "javascript", ".ipynb": "json"}


def attached(question: str, parts: Iterable[str]) -> str:
    """A question with what it takes along below it.

    Raises:
        BadInput: ``TOO_MUCH_ATTACHED``.
    """
    text = "\n\n".join([question.rstrip(), *parts])
    if len(text) > MOST:
        raise BadInput(
            "TOO_MUCH_ATTACHED",
            f"The question has {len(text):,} characters with what is attached; {MOST:,} fit. Attach less.",
        )
    return text


def file_part(path: str | Path) -> str:
    """A text file.

    Raises:
        BadInput: ``FILE_UNREADABLE``.
    """
    file = Path(path)
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_file(file, error) from None
    return f"The file {file}:\n\n{fenced(text.rstrip(), _LANGUAGES.get(file.suffix, file.suffix[1:]))}"
