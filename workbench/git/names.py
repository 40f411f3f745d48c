"""Checks names of branches and commits before they are passed to git: none can be an option or an expression."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from workbench.errors import BadInput

# git-check-ref-format(1), and no leading dash (git-branch).
_NOT_A_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\A[-/]|(?:\A|/)\.|\.lock(?:/|\Z)|[/.]\Z|\A@?\Z")
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_LONGEST = 1_100
_LONGEST_NEW = 1_000
_PSEUDO_REF = re.compile(r"[A-Z_]*HEAD")


def is_name(text: str) -> bool:
    """Whether git accepts `text` as the name of a reference."""
    with suppress(UnicodeEncodeError):
        return len(os.fsencode(text)) <= _LONGEST and not _NOT_A_NAME.search(text)
    return False


def is_object_id(text: str) -> bool:
    """Whether `text` has the form of a full object id (SHA-1 or SHA-256)."""
    return _OBJECT_ID.fullmatch(text) is not None


def check_branch_name(name: str) -> None:
    """Refuse a name for a new branch that git or a file system would not accept.

    Raises:
        BadInput: ``BAD_BRANCH_NAME``.
    """
    ambiguous = is_object_id(name) or _PSEUDO_REF.fullmatch(name) or name.startswith("refs/")
    if ambiguous or not is_name(name) or _is_long(name):
        raise BadInput(
            "BAD_BRANCH_NAME",
            f"{name[:80]!r} cannot name a branch. Use letters, digits, '-', '_' and '/', as in 'feature/login'.",
        )


def _is_long(name: str) -> bool:
    parts = [len(os.fsencode(part)) for part in name.split("/")]
    return max(parts) > 200 or sum(parts) + len(parts) > _LONGEST_NEW
