"""Finds content of a project's files that needs the user's trust, because it may have come with the repository.

That is every profile, every setting that is not harmless, what the workplace of a persona opens, and the patterns of
`.worktreeinclude`. It is shown before it is trusted; the digest of exactly
the text shown is recorded outside the repository, so a change asks again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, why_unreadable
from workbench.present.inert import inert_line
from workbench.rules.persona import SUFFIX
from workbench.rules.persona import parse as parse_persona
from workbench.rules.workplace import as_json, opening, parse
from workbench.state import user_files
from workbench.state.root import STATE
from workbench.state.settings import SETTINGS_FILE, Settings, digest
from workbench.state.settings_file import NOT_TRUSTED
from workbench.system import atomic_file

PROFILES = "profiles"
PERSONAS = "personas"
INCLUDED = ".worktreeinclude"
"""The file at the top of a project with patterns of ignored files that worktrees get."""


@dataclass(frozen=True, slots=True)
class Privileged:
    """The part of a file that needs trust.

    Args:
        file: its path below `.aiswarm/`, or `INCLUDED`, which is at the top of the project.
        names: the settings or keys; none for a profile.
        text: the content to trust, for the user to read.
        digest: identifies that content.
    """

    file: str
    names: tuple[str, ...]
    text: str
    digest: str

    @property
    def place(self) -> str:
        """The path of the file below the project, without characters that act on a terminal."""
        return inert_line(self.file if self.file == INCLUDED else f"{STATE}/{self.file}")

    @property
    def lines(self) -> list[str]:
        """The text line by line, without characters that act on a terminal."""
        return [inert_line(line) for line in self.text.splitlines()]


def read_profile(path: Path) -> Privileged:
    """The profile in a file of a project.

    Raises:
        BadInput: ``PROFILE_INVALID``: it cannot be read.
    """
    try:
        text = atomic_file.read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("PROFILE_INVALID", f"Profile {path.stem} cannot be read: {why_unreadable(error)}.") from None
    return Privileged(f"{PROFILES}/{path.name}", (), text, hashlib.sha256(text.encode()).hexdigest())


def privileged(project: Path) -> list[Privileged]:
    """Everything in the files of a project that needs trust, trusted or not; unreadable profiles are left out.

    Raises:
        BadInput: ``BAD_SETTINGS``.
    """
    settings = Settings.needing_trust(Settings.of_project(project))
    return [*_as_privileged(settings), *_read_profiles(project), *_read_personas(project), *_read_included(project)]


def withheld(project: Path) -> list[Privileged]:
    """The privileged parts that are not trusted, and therefore not used.

    Raises:
        BadInput: ``BAD_SETTINGS``.
    """
    trusted = user_files.load_record(project).trusted
    return [part for part in privileged(project) if not is_trusted(part, trusted)]


def notice(project: Path) -> str:
    """Two sentences about the parts that are not used, and how to trust them; empty if there are none.

    Raises:
        BadInput: ``BAD_SETTINGS``.
    """
    places = [part.place + (f" ({', '.join(part.names)})" if part.names else "") for part in withheld(project)]
    if not places:
        return ""
    return f"Not used, because you have not trusted it: {', '.join(places)}. `workbench trust` shows it."


def untrusted_settings(project: Path) -> tuple[str, ...]:
    """The settings that the file of a project sets and that are not used; none if the file is invalid."""
    try:
        return next((part.names for part in withheld(project) if part.file == SETTINGS_FILE), ())
    except BadInput:
        return ()


def set_but_not_trusted(project: Path, *names: str) -> str:
    """A sentence for an error that asks for these settings: the project's file sets them; empty if it does not.

    It begins with a space.
    """
    untrusted = [name for name in names if name in untrusted_settings(project)]
    return f" {NOT_TRUSTED.format(names=' and '.join(untrusted))}" if untrusted else ""


def is_trusted(part: Privileged, trusted: Mapping[str, str]) -> bool:
    """Whether exactly this part is trusted, according to the record of its project."""
    return trusted.get(part.file) == part.digest


def trust(project: Path, shown: Iterable[Privileged]) -> None:
    """Record that the user trusts exactly the parts shown.

    Raises:
        Unavailable: ``CONFIG_UNWRITABLE``.
    """
    with user_files.record_lock(project):
        trusted = user_files.load_record(project).trusted
        user_files.update_record(project, trusted={**trusted, **{part.file: part.digest for part in shown}})


def trusts_persona(project: Path, persona_id: str, workplace: Mapping[str, Any]) -> bool:
    """Whether what the workplace of a persona opens is trusted. Blocks."""
    opened, trusted = as_json(opening(workplace)), user_files.load_record(project).trusted
    files = (f"{PERSONAS}/{persona_id}{end}.md" for end in ("", SUFFIX))
    return not opened or digest(opened) in {trusted.get(file) for file in files}


def included(project: Path) -> tuple[str, ...]:
    """The patterns of a project's `.worktreeinclude`, if it is trusted. Blocks.

    Raises:
        BadInput: ``BAD_WORKPLACE``.
    """
    trusted = user_files.load_record(project).trusted
    parts = [part for part in _read_included(project) if is_trusted(part, trusted)]
    return tuple(parse({"include": list(parts[0].names)}, INCLUDED)["include"]) if parts else ()


def _read_personas(project: Path) -> Iterable[Privileged]:
    for path in sorted((project / STATE / PERSONAS).glob("*.md")):
        try:
            opened = opening(parse_persona(path.stem, atomic_file.read(path)).workplace)
        except (BadInput, OSError, UnicodeDecodeError):  # where personas are read, it is named
            continue
        if opened:
            text = "\n".join(f"{name}: {json.dumps(as_json(opened)[name])}" for name in opened)
            yield Privileged(f"{PERSONAS}/{path.name}", tuple(opened), text, digest(as_json(opened)))


def _read_included(project: Path) -> Iterable[Privileged]:
    try:
        text = atomic_file.read(project / INCLUDED)
    except (OSError, UnicodeDecodeError):
        return
    patterns = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if patterns:
        yield Privileged(INCLUDED, patterns, text, hashlib.sha256(text.encode()).hexdigest())


def _as_privileged(settings: Mapping[str, Any]) -> Iterable[Privileged]:
    if settings:
        text = "\n".join(f"{name} = {json.dumps(value, default=str)}" for name, value in settings.items())
        yield Privileged(SETTINGS_FILE, tuple(settings), text, digest(settings))


def _read_profiles(project: Path) -> Iterable[Privileged]:
    for path in sorted((project / STATE / PROFILES).glob("*.yaml")):
        try:
            yield read_profile(path)
        except BadInput:
            continue
