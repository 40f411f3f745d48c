"""The workplace of commands in a worktree, worked out for this machine: paths, mounts, a GPU, variables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.confinement import Mount, environments, gpus
from workbench.confinement.editable import unreadable
from workbench.definition_files.secret_sources import resolve
from workbench.errors import NotFound, Unavailable
from workbench.rules.definitions.secrets.references import parse as parse_reference
from workbench.rules.secrets.forms import secrets_in
from workbench.rules.workplace import KEYS, Workplace, parse
from workbench.state.home import expanded
from workbench.state.settings import Settings

SETTINGS = "settings"
"""The name of the widest level."""


@dataclass(frozen=True, slots=True)
class OpenedPlaces:
    """What a box has because of a workplace."""

    read: tuple[Path, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hide: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = ()
    variables: Mapping[str, str] | None = None


def of_settings(settings: Settings) -> Workplace:
    """The workplace that the settings describe, the widest of its levels.

    Raises:
        BadInput: ``BAD_WORKPLACE``.
    """
    stated = {key: getattr(settings, key) for key in KEYS if key in settings.model_fields_set}
    return Workplace().narrowed(parse(stated, "The settings"), SETTINGS)


def open_places(settings: Settings, workplace: Workplace, gpu: gpus.Gpu | None = None) -> OpenedPlaces:
    """Work out the paths of a workplace. Blocks.

    Raises:
        NotFound: ``READ_NOT_FOUND``, ``ENVIRONMENT_NOT_FOUND``. Unavailable: ``ENVIRONMENT_BROKEN``.
    """
    project = settings.project
    read: list[Path] = []
    mounts: list[Mount] = []
    for path in workplace.read:
        place = _place(project, path)
        if not place.exists():
            raise NotFound(
                "READ_NOT_FOUND",
                f"The workplace reads {path}, but there is nothing at {place}. Create it, or leave it out of read.",
                path=str(place),
            )
        _open(place, project, read, mounts)
    environment = environment_of(settings, workplace)
    if environment:
        _open(environment.place, project, read, mounts)
        read += environment.base
    variables = gpus.variables_of([gpu] if gpu else []) | (environment.variables if environment else {})
    return OpenedPlaces(
        read=(*read, *(gpu.read if gpu else ())),
        mounts=tuple(mounts),
        hide=tuple(_place(project, path) for path in workplace.hide),
        devices=gpu.devices if gpu else (),
        programs=(environment.programs,) if environment else (),
        variables=variables,
    )


def told_installs(settings: Settings, workplace: Workplace) -> list[str]:
    """A sentence about each editable install of another project in the environment that the box does not read. Blocks.

    Raises:
        WorkbenchError: see `open_places`.
    """
    if not (environment := environment_of(settings, workplace)):
        return []
    read = [expanded(path) for path in settings.confinement_read.split(":") if path]
    opened = open_places(settings, replace(workplace, environment=""))
    readable = (settings.project, *read, *opened.read, *(mount.source for mount in opened.mounts))
    return [
        f"The environment has an editable install from {entry.directory}, which commands cannot read, so importing it "
        "fails: the key read of the workplace opens it."
        for entry in unreadable(environment.directory, readable)
    ]


def environment_of(settings: Settings, workplace: Workplace) -> environments.ProgramEnvironment | None:
    """The environment of Python that a workplace names. Blocks.

    Raises:
        NotFound: ``ENVIRONMENT_NOT_FOUND``. Unavailable: ``ENVIRONMENT_BROKEN``.
    """
    return environments.find(_place(settings.project, workplace.environment)) if workplace.environment else None


def choose_gpu(workplace: Workplace, taken: Collection[str] = ()) -> gpus.Gpu | None:
    """The GPU of a new box, if its workplace asks for one. Blocks.

    Raises:
        Unavailable: ``GPU_UNAVAILABLE``.
    """
    return gpus.choose(gpus.find(), taken) if workplace.gpu else None


def variables(settings: Settings, workplace: Workplace) -> dict[str, str]:
    """The variables of a workplace, with the secrets that it refers to. Blocks.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``; `details.place` names the variable.
    """
    values: dict[str, str] = {}
    for name, value in workplace.env.items():
        reference = parse_reference(value)
        try:
            values[name] = reference.scheme + resolve(reference, settings.project) if reference else value
        except Unavailable as error:
            raise Unavailable(
                error.code, f"env.{name}: {error.message}", **error.details, place=f"env.{name}"
            ) from None
    return values


def secret_variables(workplace: Workplace) -> tuple[str, ...]:
    """The names of the variables that refer to secrets."""
    return tuple(name for name, value in workplace.env.items() if parse_reference(value))


def secrets_of(workplace: Workplace, values: Mapping[str, str]) -> Iterator[str]:
    """The secrets in the variables of a workplace, as `variables` returns them."""
    for name in workplace.env:
        yield from (values[name],) if name in secret_variables(workplace) else secrets_in(values[name], name)


def _place(project: Path, path: str) -> Path:
    return project / expanded(path)


def _open(place: Path, project: Path, read: list[Path], mounts: list[Mount]) -> None:
    """Have a path readable; one of the project stands in the worktree, too."""
    source = place.resolve()
    if place.is_relative_to(project):
        mounts.append(Mount(source, place))
    else:
        read.append(source)
