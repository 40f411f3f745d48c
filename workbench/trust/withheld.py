"""Finds content of a project's files that needs the user's trust, because it may have come with the repository.

That is every profile, and every setting that is not harmless. It is shown before it is trusted; the digest of exactly
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
from workbench.state import user_files
from workbench.state.root import STATE
from workbench.state.settings import SETTINGS_FILE, Settings, digest
from workbench.state.settings_file import NOT_TRUSTED
from workbench.system import atomic_file

PROFILES = "profiles"


@dataclass(frozen=True, slots=True)
class Privileged:
    """The part of a file that needs trust.

    Args:
        file: its path below `.aiswarm/`.
        names: the settings; none for a profile.
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
        return inert_line(f"{STATE}/{self.file}")

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
    return [*_as_privileged(settings), *_read_profiles(project)]


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
        return next((part.names for part in withheld(project) if part.names), ())
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
