"""How git merges notebooks: by a merge driver that Workbench names in its own commands, never in a configuration.

Without nbdime, git merges them as text.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from workbench.git import clones
from workbench.git.plumbing import Plumbing

RULES = Path(__file__).with_name("notebooks.gitattributes")
"""Attributes that name the driver; the person's own rules take precedence."""
_PROGRAM = Path(__file__).with_name("notebook_merge.py")
_DRIVER = "merge.workbench-notebook"


def driver(rules: Path = RULES) -> tuple[str, ...]:
    """Settings (``key=value``) by which git merges notebooks cell by cell; none without nbdime.

    Args:
        rules: a file of attributes.
    """
    if not _is_available():
        return ()
    program = shlex.join([sys.executable, "-I", str(_PROGRAM)]).replace("%", "%%")
    command = f"{program} %O %A %B %L"
    return (
        f"{_DRIVER}.name=Workbench's merge of notebooks",
        f"{_DRIVER}.driver={command}",
        f"core.attributesFile={rules}",
    )


@cache
def _is_available() -> bool:
    return importlib.util.find_spec("nbdime") is not None


@contextmanager
def prepared(repository: Plumbing) -> Iterator[tuple[Plumbing, tuple[str, ...]]]:
    """The person's repository, and settings, to merge trees in it with the driver.

    Git makes the files for drivers in the directory that it runs in: not in the checkout, unless the person has drivers
    of her own, which expect that. It reads attributes there, too: those at the top of the checkout are copied.
    """
    if not _is_available():
        yield repository, ()
        return
    with tempfile.TemporaryDirectory(prefix="workbench-merge-") as name:
        tree, rules = Path(name, "tree"), Path(name, "rules")
        tree.mkdir()
        own_rules = b"\n".join(clones.user_rules(repository, "attributes", "core.attributesFile"))
        rules.write_bytes(RULES.read_bytes() + own_rules)
        if repository.read("config", "--get-regexp", r"^merge\..*\.driver$", ok=(0, 1)).out:
            yield repository, driver(rules)
            return
        attributes = repository.root / ".gitattributes"
        if attributes.is_file() and not attributes.is_symlink():
            (tree / attributes.name).write_bytes(attributes.read_bytes())
        yield replace(repository, root=tree), driver(rules)
