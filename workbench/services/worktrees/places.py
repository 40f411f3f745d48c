"""Where the files of worktrees are, the box of commands in them, and exclusive access to the user's repository."""

from __future__ import annotations

import logging
import os
from asyncio import to_thread
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.confinement import Box
from workbench.confinement.gpus import Gpu
from workbench.errors import Unavailable, WorkbenchError
from workbench.git import Checkout, CommitIdentity, IncludedFile, Repository, unverified
from workbench.ops import SYSTEM, Ctx
from workbench.present.inert import inert_line
from workbench.rules.secrets.forms import secrets_in_settings
from workbench.rules.workplace import Workplace
from workbench.services.processes import sandbox
from workbench.services.processes.workplaces import choose_gpu, of_settings, variables
from workbench.services.worktrees.rows import require_here
from workbench.state import outside
from workbench.state.settings import Settings
from workbench.store.base import Row
from workbench.system import file_lock
from workbench.system.tree_removal import remove_tree
from workbench.trust.withheld import included

log = logging.getLogger(__name__)

SUBMODULES_OFF = "the setting submodules is off"
POINTERS_SHOWN = 5
LARGEST_SECRETS, MOST_SECRETS = 65_536, 200
"""The size of a file for worktrees in which secrets are looked for, and how many."""
COMMITTER = CommitIdentity("Workbench", "workbench@localhost")
"""Author and committer of the commits that Workbench makes."""


@dataclass(frozen=True, slots=True)
class WorktreeLocation:
    """Where a worktree is: its files, its own git directory, and the home directory of confined commands."""

    name: str
    path: Path
    git_dir: Path
    scratch: Path

    @classmethod
    def of(cls, settings: Settings, name: str) -> WorktreeLocation:
        """The place of the worktree `name`."""
        return cls(name, settings.worktree(name), settings.repositories / name, settings.scratch / name)

    @classmethod
    def of_new(cls, settings: Settings, name: str) -> WorktreeLocation:
        """The place of a worktree that is to be created: outside of the project if it cannot stand at its path.

        Raises:
            Unavailable: ``CONFINEMENT_UNAVAILABLE``.
        """
        place = cls.of(settings, name)
        return place if sandbox.has_own_files(settings) else replace(place, path=settings.outer_worktree(name))

    @classmethod
    def of_trial(cls, settings: Settings, name: str) -> WorktreeLocation:
        """Where the commands of a trial run; see `trials`.

        Raises:
            Unavailable: ``CONFINEMENT_UNAVAILABLE``.
        """
        inner, outer = paths_of_trial(settings, name)
        home, path = inner.parent, inner if sandbox.has_own_files(settings) else outer
        return cls(f"trial-{name}", path, home / "repository", home / "scratch")


def paths_of_trial(settings: Settings, name: str) -> tuple[Path, Path]:
    """Where the files of a trial may be: in the project, and outside of it."""
    return settings.gates / name / "files", settings.outer_gates / name / "files"


@contextmanager
def gates_held(settings: Settings, approval_id: int) -> Iterator[bool]:
    """Hold the lock on the gates of an approval and their files; False if another holder has it.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    with file_lock.held(_gates_lock(settings, approval_id), remove=True) as is_held:
        yield is_held


def gates_are_held(settings: Settings, approval_id: int) -> bool:
    """Whether the lock on the gates of an approval is held. Asking creates no lock file.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    path = _gates_lock(settings, approval_id)
    if not path.exists():
        return False
    with file_lock.held(path) as is_free:
        return not is_free


def _gates_lock(settings: Settings, approval_id: int) -> Path:
    return settings.gates / f"{approval_id}.lock"


@asynccontextmanager
async def exclusive(ctx: Ctx) -> AsyncIterator[Repository]:
    """Exclusive access to the user's repository, after interrupted changes have been repaired.

    Raises:
        Unavailable: ``GIT_BUSY``.
    """
    async with ctx.local.repositories.exclusive() as repository:
        for repair in ctx.repairs:
            await repair(ctx.of(SYSTEM), repository)
        yield repository


def place_of(ctx: Ctx, row: Row) -> WorktreeLocation:
    """The place of a worktree from its row.

    Raises:
        Conflict: ``ON_ANOTHER_MACHINE``.
    """
    return WorktreeLocation.of(ctx.settings, require_here(ctx, row)["name"])


def box_of(
    settings: Settings,
    repository: Repository,
    place: WorktreeLocation,
    taken: Collection[str] = (),
    *,
    with_gpu: bool = True,
) -> Box:
    """The box of commands that a person has run in a worktree, with the workplace of the settings and its variables.

    Args:
        taken: GPUs that it does not get.
        with_gpu: whether it gets one, if the workplace asks for that.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``, ``GPU_UNAVAILABLE``, ``SECRET_UNRESOLVED``. BadInput:
            ``BAD_WORKPLACE``. WorkbenchError: see `sandbox.box`.
    """
    workplace = of_settings(settings)
    gpu = choose_gpu(workplace, taken) if with_gpu else None
    box = _box(settings, repository, place, workplace, gpu)
    return replace(box, variables=(*box.variables, *variables(settings, workplace).items()))


def _box(
    settings: Settings, repository: Repository, place: WorktreeLocation, workplace: Workplace, gpu: Gpu | None = None
) -> Box:
    place.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    box = sandbox.box(
        settings,
        worktree=place.path,
        git_dir=place.git_dir,
        objects=repository.object_directories(),
        scratch=place.scratch,
        project=repository.root,
        workplace=workplace,
        gpu=gpu,
    )
    repository.anchor_worktree(place.path, place.git_dir, box.mount_points)
    return box


def checkout_of(
    settings: Settings, repository: Repository, place: WorktreeLocation, *, limit: float | None = None
) -> Checkout:
    """A worktree as seen from inside its box. Blocks while it creates the home directory.

    Args:
        limit: seconds that each git command may take; None: as in the user's repository.

    Raises:
        Unavailable: ``REPOSITORY_DAMAGED``, ``CONFINEMENT_UNAVAILABLE``.
    """
    unverified.require_sound(place.git_dir)
    # Git needs nothing that the workplace opens, so nothing that is wrong there keeps the work in a worktree from it.
    hidden = of_settings(settings).hide if sandbox.has_own_files(settings) else ()
    box = _box(settings, repository, place, Workplace(hide=hidden))
    return Checkout(
        place.path,
        place.git_dir,
        wrap=box.guarded,
        environment=box.environment(os.environ),
        limit=limit or repository.limit,
        seen_at=box.inside(place.path),
        told=box.told,
        start=repository.start_in_worktrees,
    )


def add_files(
    settings: Settings,
    repository: Repository,
    place: WorktreeLocation,
    branch: str | None,
    commit: str,
    *,
    existing: bool = False,
    include: Sequence[IncludedFile] = (),
    submodules: bool | None = None,
) -> None:
    """Create a worktree's directory and repository; see `Repository.add_worktree`. The user's filters run in its box.

    If a filter fails there, the files stay as they are stored in the repository; see `Checkout.apply_filters`.
    Submodules get their files, too, as far as the user's repository has them.

    Args:
        include: copied into it, where its commit has nothing; see `find_included`.
        submodules: whether submodules get their files; None: as the settings say.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``. Conflict: ``INCLUDE_IN_THE_WAY``. Unavailable: ``INCLUDE_FAILED``.
    """
    make_way(settings, place)
    (settings.setups / place.name).unlink(missing_ok=True)  # of an earlier worktree of this name
    repository.add_worktree(place.path, place.git_dir, branch, commit, existing=existing)
    if names := repository.filters():
        try:
            _patient(settings, repository, place).apply_filters(names)
            unverified.require_sound(place.git_dir)
            remove_tree(place.git_dir / "lfs" / "objects")  # copies of what the user's repository has
        except Unavailable as error:
            log.warning("the filters of the worktree %s are disabled: %s", place.name, error.message)
    fill_submodules(settings, repository, place, commit, wanted=submodules)
    repository.copy_included(place.path, include)


def fill_submodules(
    settings: Settings,
    repository: Repository,
    place: WorktreeLocation,
    commit: str,
    before: str | None = None,
    *,
    wanted: bool | None = None,
) -> None:
    """Give a worktree the files of its submodules; see `Repository.fill_submodules`. Nothing of it may be running.

    Args:
        wanted: whether it is to have them; None: as the settings say.
    """
    if (settings.submodules if wanted is None else wanted) and repository.has_submodules(commit):
        for left_out in repository.fill_submodules(_patient(settings, repository, place), commit, before):
            log.info("the worktree %s has no files of the submodule %s", place.name, left_out)


def _patient(settings: Settings, repository: Repository, place: WorktreeLocation) -> Checkout:
    """The checkout of a worktree whose git commands may take as long as writing its files needs."""
    return replace(checkout_of(settings, repository, place), limit=repository.checkout_limit)


def lfs_pointers(settings: Settings, repository: Repository, place: WorktreeLocation) -> list[str]:
    """The files of Git LFS of which a worktree has only the pointers."""
    return _patient(settings, repository, place).pointers() if "lfs" in repository.filters() else []


async def told_pointers(ctx: Ctx, worktree: str | None) -> list[str]:
    """A sentence about the files of Git LFS of which a worktree has only the pointers; none if it has no such files,
    or is not as it should be, which its status says."""
    if worktree is None or not is_there(place := WorktreeLocation.of(ctx.settings, worktree)):
        return []
    try:
        pointers = await to_thread(lfs_pointers, ctx.settings, await ctx.local.repositories.open(), place)
    except WorkbenchError:
        return []
    more = f" and {len(pointers) - POINTERS_SHOWN} more" if len(pointers) > POINTERS_SHOWN else ""
    names = ", ".join(map(inert_line, pointers[:POINTERS_SHOWN])) + more
    text = f"The worktree {worktree} does not have the contents of files of Git LFS, but only pointers: {names}. "
    return [f"{text}Run `git lfs fetch` in your checkout, and create the worktree then."] if pointers else []


def find_included(settings: Settings, repository: Repository, workplace: Workplace) -> list[IncludedFile]:
    """The ignored files that a new worktree gets: by its workplace, and by the project's `.worktreeinclude`. Blocks.

    Raises:
        BadInput: ``INCLUDE_REFUSED``, ``INCLUDE_TOO_LARGE``, ``BAD_WORKPLACE``.
    """
    return repository.find_included((*workplace.include, *included(settings.project)), settings.max_include_bytes)


def included_secrets(settings: Settings, files: Sequence[IncludedFile]) -> set[str]:
    """What is secret in files that a worktree gets, such as `.env`. Blocks."""
    found = set[str]()
    for file in [file for file in files if file.bytes <= LARGEST_SECRETS][:MOST_SECRETS]:
        with suppress(OSError):  # gone meanwhile
            text = (settings.project / file.path).read_bytes().decode("utf-8", "replace")
            found |= secrets_in_settings(text, opaque=Path(file.path).name.startswith(".env"))
    return found


def make_way(settings: Settings, place: WorktreeLocation) -> None:
    """For a worktree that lies outside of the project, make the directories around it and a link to it.

    Raises:
        Unavailable: ``WORKTREE_PATH_UNUSABLE``, ``PROJECT_UNWRITABLE``.
    """
    if place.path.is_relative_to(settings.home):
        return
    link = settings.worktrees / place.name
    try:
        outside.make_around(place.path, settings.home)
        if place.path == settings.outer_worktree(place.name) and not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place.path)
    except OSError as error:
        raise Unavailable("WORKTREE_PATH_UNUSABLE", f"Cannot create a worktree at {place.path}: {error}.") from error


def remove_link(settings: Settings, place: WorktreeLocation) -> None:
    """Remove the link to a worktree whose files were outside of the project."""
    if (link := settings.worktrees / place.name).is_symlink():
        link.unlink()


def is_there(place: WorktreeLocation) -> bool:
    """Whether both the files of a worktree and its repository exist."""
    return place.path.is_dir() and place.git_dir.is_dir()


def empty_submodules(
    settings: Settings, repository: Repository, place: WorktreeLocation, commit: str | None
) -> list[str]:
    """The submodules at a commit of a worktree whose files it does not have, each with the reason."""
    if commit is None:
        return []
    return repository.empty_submodules(place.path, commit, None if settings.submodules else SUBMODULES_OFF)


def worktree_gone(place: WorktreeLocation) -> Unavailable:
    """The error for a worktree whose files are missing."""
    return Unavailable(
        "WORKTREE_GONE",
        f"The files of the worktree {place.name} are missing. Its branch has the commits that were last imported. "
        "Discard the worktree, then create it anew with its branch as branch_name.",
        path=str(place.path),
    )
