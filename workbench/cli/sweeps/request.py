"""What a person asks for when starting a sweep: options and a notebook, or a YAML file that says the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from workbench.errors import BadInput, unreadable_file
from workbench.rules.sweeps import specification as rules
from workbench.rules.sweeps.specification import Specification, SweepLimits

Fn = TypeVar("Fn", bound=Callable[..., Any])
YAML = (".yaml", ".yml")
DEFAULT_WORKERS = 8
"""At most, by default; each kernel takes 60 MB or more. A Dask cluster gets as many runs as it has threads."""


@dataclass(frozen=True)
class SweepRequest:
    """A sweep as it was asked for.

    Args:
        notebook: its path; empty: that of the sweep of this name, with the values that it was begun with.
        base: the directory that the notebook's path is relative to.
        parameters, over: values by name.
        others: of `name`, `workers`, `timeout`, `memory`, `share`, `dask` and `kernel` those that were given.
    """

    notebook: str
    base: Path
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    over: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    repeat: int = 1
    others: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False
    retry_failed: bool = False
    dry_run: bool = False
    changed: bool = False

    @property
    def specification(self) -> Specification:
        """What is to be run.

        Raises:
            BadInput: ``BAD_PARAMETER``.
        """
        return Specification(self.notebook, self.parameters, self.over, self.repeat)

    @property
    def limits(self) -> SweepLimits:
        """Within which limits.

        Raises:
            BadInput: ``BAD_SWEEP``.
        """
        here = min(DEFAULT_WORKERS, os.cpu_count() or 1)
        most = here if self.dask in (None, rules.LOCAL_CLUSTER) else rules.MOST_WORKERS
        return SweepLimits(self.others.get("workers", most), self.others.get("timeout"), self.others.get("memory"))

    @property
    def name(self) -> str:
        """The sweep's name.

        Raises:
            BadInput: ``BAD_NAME``.
        """
        name = self.others.get("name")
        return rules.check_name(rules.default_name(self.notebook) if name is None else name)

    @property
    def goes_on(self) -> bool:
        """Whether a sweep that was begun goes on."""
        return self.resume or self.retry_failed or self.changed

    @property
    def share(self) -> bool:
        """Whether runs coordinate in one session."""
        return bool(self.others.get("share"))

    @property
    def dask(self) -> str | None:
        """The Dask cluster that executes the runs; None: threads do.

        It is `LOCAL_CLUSTER`, the name of a machine of the settings, or the address of a scheduler.
        """
        return self.others.get("dask")


def sweep_options(command: Fn) -> Fn:
    """Give a command the arguments and options of a sweep."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument(
        "file", type=click.Path(path_type=Path, dir_okay=False), metavar="[NOTEBOOK|FILE.yaml]", required=False
    ),
    click.option(
        "-p",
        "--parameter",
        "parameters",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter: 1,2,5 or 1..50 or 0..1:0.25; repeatable.",
    ),
    click.option(
        "--over", multiple=True, metavar="persona|definition=NAMES", help="Go over personas or definitions; repeatable."
    ),
    click.option("--repeat", type=int, default=None, help="Run each combination this many times."),
    click.option(
        "--workers",
        type=int,
        default=None,
        help="Runs at the same time; default: the number of processors, or of threads of the Dask cluster.",
    ),
    click.option("--name", default=None, help="The sweep's name; default: the notebook's."),
    click.option("--resume", is_flag=True, help="Go on with the sweep of this name: run what has not been run."),
    click.option("--retry-failed", is_flag=True, help="The same, and run again what failed."),
    click.option(
        "--changed",
        is_flag=True,
        help="The same as --resume, although the notebook has changed since; its runs record the new hash.",
    ),
    click.option(
        "--kernel", default=None, metavar="NAME", help="Use this kernel, not the one that the notebook names."
    ),
    click.option("--timeout", type=float, default=None, metavar="SECONDS", help="End runs that take longer."),
    click.option("--memory", default=None, metavar="SIZE", help="End runs that use more, such as 2GB."),
    click.option(
        "--share",
        is_flag=True,
        default=None,
        help="Let all runs coordinate in your session, not one of their own each.",
    ),
    click.option(
        "--dask",
        default=None,
        metavar="ADDRESS|NAME|local",
        help="Let a Dask cluster run them: the one of the scheduler at ADDRESS, that of a machine in the settings, or "
        "one on this machine.",
    ),
    click.option("--dry-run", is_flag=True, help="Only show what would be run."),
)


def of_options(largest: int, base: Path, file: Path | None, **options: Any) -> SweepRequest:
    """The request that options make; those that are given override the YAML file.

    Args:
        largest: most values of a parameter.
        base: what paths are relative to.
        file: None: go on with the sweep of this name as it was begun.

    Raises:
        BadInput: ``FILE_UNREADABLE``, ``BAD_SWEEP``, ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    parameters = rules.typed(options["parameters"], largest)
    over = rules.typed_over(options["over"], largest)
    named = ("name", "workers", "timeout", "share", "dask", "kernel")
    execution = {name: options[name] for name in named if options.get(name) is not None}
    if options["memory"] is not None:
        execution["memory"] = rules.parse_size(options["memory"])
    flags = {name: bool(options.get(name)) for name in ("resume", "retry_failed", "dry_run", "changed")}
    repeat: int | None = options["repeat"]
    if file is None:
        return require_begun(
            SweepRequest("", base, parameters, over, 1 if repeat is None else repeat, execution, **flags)
        )
    if file.suffix.lower() not in YAML:
        return SweepRequest(str(file), base, parameters, over, 1 if repeat is None else repeat, execution, **flags)
    specification_file = rules.from_yaml(_text(base / file), largest)
    described = specification_file.specification
    return SweepRequest(
        described.notebook,
        (base / file).parent,
        {**described.parameters, **parameters},
        {**described.over, **over},
        described.repeat if repeat is None else repeat,
        {**specification_file.options, **execution},
        **flags,
    )


def require_begun(request: SweepRequest) -> SweepRequest:
    """A request without a notebook, which must go on with a sweep and change nothing of what it runs.

    Raises:
        BadInput: ``BAD_SWEEP``.
    """
    goes_on = request.others.get("name") and request.goes_on
    if not goes_on or request.parameters or request.over or request.repeat != 1:
        raise BadInput(
            "BAD_SWEEP",
            "Name a notebook. Only --resume and --retry-failed can leave it out: with --name, and without values, they "
            "go on with the sweep of this name as it was begun.",
        )
    return request


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_file(file, error) from None
