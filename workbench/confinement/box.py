"""The paths and ports that a command may touch, as a value that can be sent with a worker's orders."""

from __future__ import annotations

import math
import os
import resource
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from workbench.confinement import compiled, landlock, namespaces, surroundings, syscalls
from workbench.confinement.abilities import abilities
from workbench.confinement.mount_points import is_taken
from workbench.confinement.told import Translation
from workbench.errors import Conflict
from workbench.state.root import shared_objects, state_around

GUARD_SECONDS = 3
"""How long a guarded command may take to end after SIGTERM; then it is killed, with all that it started."""

SHM_BYTES = 1 << 30
"""How much a command may keep in its own /dev/shm, unless the box says otherwise. It counts as memory when used."""
_SHM = Path("/dev/shm")
CONNECTIONS = 200
"""How many connections a command has by its gate at a time, unless the box says otherwise."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What a worker may use; None is no limit.

    `cpu_seconds`, `memory_bytes` and `wall_seconds` count a command with all its descendants; `tasks` is how many a
    worker takes before it ends.
    """

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    wall_seconds: float | None = None
    tasks: int | None = None

    def rlimits(self) -> dict[int, int]:
        """The backstop for each single process, as arguments of ``setrlimit``."""
        # Not RLIMIT_AS: node and others reserve far more addresses than they use.
        limits = {resource.RLIMIT_CORE: 0}
        if self.cpu_seconds is not None:
            limits[resource.RLIMIT_CPU] = max(1, math.ceil(self.cpu_seconds))
        if self.memory_bytes is not None:
            limits[resource.RLIMIT_DATA] = self.memory_bytes
        return limits


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of this side that a box has at `at`, read-only unless `writable`."""

    source: Path
    at: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class WayOut:
    """What a command's launcher needs for the gate of its box, see `gate`; of a box without a gate, nothing.

    Args:
        hand_over: the number of the open file by which listeners are handed over.
        listen: their ports.
        proxy: the port of a proxy, where the box has no network of its own.
    """

    hand_over: int | None = None
    listen: tuple[int, ...] = ()
    proxy: int | None = None

    def arguments(self) -> Iterator[str]:
        """The launcher's orders."""
        if self.hand_over is not None:
            yield f"gate={self.hand_over}"
            yield from (f"listen={port}" for port in self.listen)
        if self.proxy is not None:
            yield f"connect={self.proxy}"


@dataclass(frozen=True, slots=True)
class Box:
    """Paths and ports that a command and all it starts may touch; everything else is refused.

    Paths in `read` can be read and executed, besides those of the system and of this Python; those in `write`, and
    `scratch`, can also be changed. A path that contains a symbolic link is ignored. `scratch` is HOME and TMPDIR.
    `connect` are TCP ports of any machine, `forward` those of this one; `hosts` and `private` are patterns, see
    `HostRules`. Without `enforce` the command runs unconfined, with the same environment. `untrusted` names settings of
    the project's file that are not trusted, so not used.

    With `namespaces`, of which `abilities().namespaces` are possible, the command has files, shared memory and a
    network of its own: it serves ports that nobody else sees, reaches others by its `gate` only, what it may not write
    is read-only, and `worktree` stands at the path of `project`. Then a path has two names: `inside` and `outside`
    translate. Without a gate, a command that may `connect` shares the machine's network. Without namespaces, the
    worktree has links in the place of `mounts`.

    Args:
        project: the top of the person's checkout.
        state: the state directory, of which the box has what its repository needs.
        mounts: what the worktree has besides its own files. Mount points are made, and are empty: see `require_free`.
        hide: what cannot be read, although something around it can be.
        shm_bytes: the size of its own /dev/shm.
        devices: that it may use.
        programs: directories that come first in PATH.
        variables: of its commands, besides those that it always sets.
    """

    write: tuple[Path, ...]
    read: tuple[Path, ...]
    scratch: Path
    connect: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    forward: tuple[int, ...] = ()
    connections: int = CONNECTIONS
    enforce: bool = True
    untrusted: tuple[str, ...] = ()
    worktree: Path | None = None
    project: Path | None = None
    state: Path | None = None
    mounts: tuple[Mount, ...] = ()
    hide: tuple[Path, ...] = ()
    shm_bytes: int = SHM_BYTES
    devices: tuple[Path, ...] = surroundings.DEVICES
    namespaces: frozenset[str] = frozenset()
    programs: tuple[Path, ...] = ()
    variables: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def argv(
        self,
        command: Sequence[str],
        limits: BoxLimits | None = None,
        *,
        guarded: bool = False,
        way_out: WayOut = WayOut(),
    ) -> list[str]:
        """The command with the launcher in front of it, which passes on only the file descriptors 0 to 2.

        Exit statuses of the launcher: 125 the command could not be confined, and has not run; 126 it cannot be
        executed; 127 it does not exist.

        Args:
            guarded: no process that the command starts outlives it (Linux).
            way_out: that of its gate, which is open until the command has ended.
        """
        guard = [f"guard={GUARD_SECONDS}"] if guarded and sys.platform == "linux" else []
        return [
            *compiled.launcher(),
            *guard,
            *self._orders(limits or BoxLimits(), way_out),
            "--",
            *command,
        ]

    def guarded(self, command: Sequence[str]) -> list[str]:
        """Like `argv`; no process that the command starts outlives it (Linux)."""
        return self.argv(command, guarded=True)

    def _orders(self, limits: BoxLimits, way_out: WayOut) -> Iterator[str]:
        yield f"home={self.scratch}"
        yield from (f"limit={number}:{limit}" for number, limit in limits.rlimits().items())
        links = {self._site / name: place for name, place in surroundings.package().items()}
        links |= {self._own_worktree / name: source for name, source in self._links.items()}
        yield from (f"link={len(str(link))}:{link}:{target}" for link, target in links.items())
        if self.enforce:
            yield from self._confinement_orders(way_out)

    def _confinement_orders(self, way_out: WayOut) -> Iterator[str]:
        own_network = self.has_own_network and (way_out.hand_over is not None or not self.connect)
        fs, net, scope = landlock.handled(landlock.version())
        if self._has_own_files:
            yield f"unshare={namespaces.flags(self.namespaces, network=own_network):x}"
            yield f"shm={self.shm_bytes}"
            yield from self._mount_orders()
        yield from (f"fs={fs:x}", f"net={0 if own_network else net:x}", f"scope={scope:x}")
        yield from (f"connect={port}" for port in (*self.connect, *self.forward))
        if self.has_gpu:
            yield f"threads={landlock.DEVICE & ~landlock.Fs.IOCTL_DEV:x}"
        yield from way_out.arguments()
        own_memory = [_SHM] if self._has_own_files else []
        for access, paths in (
            (landlock.READ, (*map(self.inside, self._readable_paths()), *self._mounted(writable=False))),
            (landlock.WRITE, (*map(self.inside, self._writable_paths()), *self._mounted(writable=True), *own_memory)),
            (landlock.DEVICE, self.devices),
        ):
            yield from (f"allow={access:x}:{path}" for path in dict.fromkeys(paths))
        if syscalls.available():
            program = syscalls.program(
                names=bool(self.connect),
                setgid=self._has_shared_directory(),
                own_network=own_network,
                own_memory=self._has_own_files,
            )
            yield f"filter={program.hex()}"

    @property
    def has_gpu(self) -> bool:
        """Whether it has more devices than others: a driver of GPUs fails if it may not name its threads."""
        return set(self.devices) > set(surroundings.DEVICES)

    def _mount_orders(self) -> Iterator[str]:
        if self.stands:
            reading = "" if self._own_worktree in self.write else "r"
            yield _mount_order(Mount(self._own_worktree, self._own_project, True), reading)
        for mount in self._views():
            optional = "" if mount in self.mounts else "o"
            yield _mount_order(mount, optional)
        if self.has_gpu:  # the names of threads are written there
            yield _mount_order(Mount(Path("/proc"), Path("/proc"), True), "o")
        # By both names: the rules of Landlock are about what is at a path, by whatever path it is reached.
        yield from (f"hide={path}" for path in dict.fromkeys(p for one in self.hide for p in (one, self.inside(one))))

    @property
    def has_own_network(self) -> bool:
        """Whether its ports are its own: what it serves nobody else reaches, and it reaches others by its gate only."""
        return self._has_own_files

    @property
    def stands(self) -> bool:
        """Whether the worktree stands at the project's path."""
        return self._has_own_files and self.worktree is not None and self.project is not None

    @property
    def _has_own_files(self) -> bool:
        return self.enforce and bool(self.namespaces)

    @property
    def _own_worktree(self) -> Path:
        assert self.worktree is not None
        return self.worktree

    @property
    def _own_project(self) -> Path:
        assert self.project is not None
        return self.project

    def _mounted(self, *, writable: bool) -> list[Path]:
        return [mount.at for mount in self._views() if mount.writable is writable]

    def _views(self) -> tuple[Mount, ...]:
        """All mounts but that of the worktree at the project's path, outer ones first: what may be written, and what
        would otherwise be covered by a mount."""
        if not self._has_own_files:
            return ()
        # Not the worktree by its other path, if that is within the project: programs would find its files twice.
        double = self.worktree if self.stands and self._own_worktree.is_relative_to(self._own_project) else None
        own = [Mount(path, at, True) for path in self._writable_paths() if path != double for at in self._names(path)]
        covered = ([self._own_project] if self.stands else []) + [_SHM]
        named = {mount.source for mount in self.mounts}
        read = [path for path in self._readable_paths() if _is_below(path, covered) and path not in (*named, double)]
        own += [Mount(path, path) for path in read if self._is_free(path)]
        return tuple(sorted((*own, *self.mounts), key=lambda mount: len(mount.at.parts)))

    def _names(self, path: Path) -> Iterator[Path]:
        """The path itself, and those by which it is below a mount, so that it can be written there, too."""
        yield path
        around = (mount for mount in self.mounts if mount.source in path.parents)
        yield from (mount.at / path.relative_to(mount.source) for mount in around if mount.at != mount.source)

    def _is_free(self, path: Path, source: Path | None = None) -> bool:
        """Whether nothing of the worktree's own is at a path of the project, at which `source` (None: the same path)
        is to be mounted."""
        if self.worktree is None or self.project is None or not path.is_relative_to(self._own_project):
            return True
        if self._is_state(path):
            return True
        name = self._relative(path)
        return (self.stands and self._has_link(name, path)) or not is_taken(self._own_worktree, name, source or path)

    def _has_link(self, name: Path, target: Path) -> bool:
        """Whether the worktree has at a relative path a link to exactly this, as a box without mounts makes it."""
        place = self._own_worktree / name
        return place.is_symlink() and place.readlink() == target and place.parent.resolve() == place.parent

    def _is_state(self, path: Path) -> bool:
        return self.state is not None and path.is_relative_to(self.state)

    def _relative(self, path: Path) -> Path:
        return path.relative_to(self._own_project)

    def require_free(self) -> None:
        """Refuse mounts where the worktree has something of its own.

        Raises:
            Conflict: ``MOUNT_POINT_TAKEN``.
        """
        for mount in self.mounts:
            if not self._is_free(mount.at, mount.source) and not self._is_linked(mount):
                name = self._relative(mount.at)
                raise Conflict(
                    "MOUNT_POINT_TAKEN",
                    f"{name} cannot be brought into the worktree {self._own_worktree.name}, because there is something "
                    "else: a file, a link, or a directory with files. Remove it there, also from the branch if git "
                    "tracks it, or leave it out of the workplace.",
                    path=str(name),
                    worktree=str(self._own_worktree),
                )

    @property
    def _links(self) -> dict[Path, Path]:
        """What stands in the worktree in place of mounts, if there can be none, by their relative paths."""
        if self._has_own_files or self.worktree is None or self.project is None:
            return {}
        within = (mount for mount in self.mounts if mount.at.is_relative_to(self._own_project))
        within = (mount for mount in within if not self._is_state(mount.at))
        return {self._relative(mount.at): mount.source for mount in within}

    def _is_linked(self, mount: Mount) -> bool:
        name = self._relative(mount.at)
        return name in self._links and self._has_link(name, mount.source)

    def _with_links(self) -> Self:
        """The box without mounts in place of links that the worktree has to the same: what these lead to is there."""
        if not self.stands:
            return self
        within = [mount for mount in self.mounts if mount.at.is_relative_to(self._own_project)]
        linked = {mount for mount in within if self._has_link(self._relative(mount.at), mount.source)}
        kept = (Mount(mount.source, mount.source) if mount in linked else mount for mount in self.mounts)
        return replace(self, mounts=tuple(kept))

    @property
    def mount_points(self) -> tuple[str, ...]:
        """The paths in the worktree at which something else is mounted, or has a link."""
        if not self.stands:
            return tuple(map(str, self._links))
        within = [mount.at for mount in self._views() if mount.at.is_relative_to(self._own_project)]
        return tuple(str(self._relative(at)) for at in within)

    def inside(self, path: Path) -> Path:
        """The path by which a command in the box finds a path of this side."""
        pairs = [(mount.source, mount.at) for mount in self.mounts] if self._has_own_files else []
        return _translate(path, [*pairs, (self._own_worktree, self._own_project)] if self.stands else pairs)

    def outside(self, path: Path) -> Path:
        """The path on this side of a path in the box."""
        pairs = self._pairs()
        return _translate(path, [*pairs, (self._own_project, self._own_worktree)] if self.stands else pairs)

    def _pairs(self) -> list[tuple[Path, Path]]:
        """Paths in the box, and what they are on this side; without that at which the worktree stands."""
        own = [(self._own_worktree, self._own_worktree)] if self.stands else []  # not there, but may be named
        return [*((mount.at, mount.source) for mount in self._views()), *own]

    def reading(self, worktree: Path, git_dir: Path, objects: Iterable[Path], project: Path) -> Self:
        """The box with a worktree that it may only read, in place of none.

        Raises:
            Conflict: ``MOUNT_POINT_TAKEN``.
        """
        how: dict[str, Any] = {"enforce": self.enforce, "namespaces": self.namespaces, "project": project}
        of = box_for_worktree(worktree=worktree, git_dir=git_dir, objects=objects, scratch=self.scratch, **how)
        box = replace(
            self,
            read=(*self.read, *of.write, *of.read),
            worktree=of.worktree,
            project=of.project,
            state=of.state,
            mounts=(*of.mounts, *_behind_links(self.mounts, worktree, project)),
        )
        box.require_free()
        return box

    def lending(self, devices: Iterable[Path], read: Iterable[Path]) -> Self:
        """The box with these devices in place of those that it has besides what every command has.

        Args:
            read: what their driver reads.
        """
        return replace(self, devices=(*surroundings.DEVICES, *devices), read=_resolve((*self.read, *read)))

    @property
    def translation(self) -> Translation:
        """What translates the paths in a command's output and results to those of this side."""
        return self.translation_to(self.worktree) if self.worktree else Translation()

    def translation_to(self, place: Path) -> Translation:
        """The same, with another path for the worktree, such as a relative one if it will soon be gone."""
        pairs = [(mount.at, mount.source) for mount in self._views()]
        if self.stands and self.state is not None:
            pairs.append((self.state, self.state))
        if self.worktree is not None:
            pairs += [(self.inside(self.worktree), place), (self.worktree, place)]
        moved = [inside for inside, outside in pairs if inside != outside]
        return Translation((inside, outside) for inside, outside in pairs if _is_below(inside, moved))

    def told(self, text: str) -> str:
        """A command's text as a person reads it: with the paths of this side."""
        return self.translation.text(text)

    def _has_shared_directory(self) -> bool:
        """Whether directories have the set-group-ID bit, which commands then copy with them, as in a shared project."""
        with suppress(OSError):
            return any(path.stat().st_mode & stat.S_ISGID for path in self.write)
        return False

    def may_write(self, path: Path) -> bool:
        """Whether the command may change a path, which is absolute and has no symbolic link in it."""
        if self._has_own_files and path.is_relative_to(_SHM):
            return True
        mounted = (mount.source for mount in self.mounts if mount.writable)
        return _is_below(path, (*self.write, self.scratch, *mounted))

    def may_read(self, path: Path) -> bool:
        """Whether the command may read a path, which is absolute and has no symbolic link in it."""
        if _is_below(path, self.hide):
            return False
        mounted = (mount.source for mount in self.mounts)
        return self.may_write(path) or _is_below(path, (*self._readable_paths(), *mounted))

    def _writable_paths(self) -> tuple[Path, ...]:
        """With a /dev/shm of its own, the machine's stays closed."""
        return tuple(path for path in (*self.write, self.scratch) if not (self._has_own_files and path == _SHM))

    def _readable_paths(self) -> tuple[Path, ...]:
        mounted = () if self._has_own_files else (mount.source for mount in self.mounts)
        return (*surroundings.shared((*self.write, self.scratch)), *self.read, *mounted)

    @property
    def _site(self) -> Path:
        """The directory in which programs in the box find a Workbench that is not installed."""
        return self.scratch / ".workbench"

    def environment(self, base: Mapping[str, str], names: Collection[str] = surroundings.COMMAND) -> dict[str, str]:
        """The variables of `base` that are in `names` and hold no credentials, and the box's own.

        PATH begins with this Python's programs, and has only directories that the box may read. The author of commits
        is Workbench unless GIT_AUTHOR_NAME and the like are set.
        """
        readable = (*self._readable_paths(), *self.write, self.scratch) if self.enforce else None
        variables = {
            "HOME": str(self.scratch),
            "TMPDIR": str(self.scratch),
            "PATH": os.pathsep.join(
                (*map(str, self.programs), surroundings.search_path(base.get("PATH", ""), readable))
            ),
            "GIT_CEILING_DIRECTORIES": ":".join(str(self.inside(place).parent) for place in self.write),
            "GIT_TERMINAL_PROMPT": "0",
        }
        if surroundings.package():
            variables["PYTHONPATH"] = str(self._site)
        if base_directory := surroundings.user_packages():
            variables["PYTHONUSERBASE"] = base_directory
        if sys.prefix != sys.base_prefix:
            variables["VIRTUAL_ENV"] = sys.prefix
        return surroundings.inherited(base, names) | variables | dict(self.variables) | self._git_settings()

    def _git_settings(self) -> dict[str, str]:
        settings = [
            ("core.fsmonitor", "false"),
            ("core.hooksPath", "/dev/null"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("user.email", "workbench@localhost"),
            ("user.name", "Workbench"),
            *(("safe.directory", str(self.inside(place))) for place in self.write),
        ]
        variables = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings):
            variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return variables

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` reads it."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The box that `as_json` wrote."""
        values: dict[str, Any] = dict(data)
        values |= {name: tuple(map(Path, data[name])) for name in ("write", "read", "hide", "devices", "programs")}
        values |= {name: data[name] and Path(data[name]) for name in ("scratch", "worktree", "project", "state")}
        values |= {name: tuple(data[name]) for name in ("connect", "hosts", "private", "forward", "untrusted")}
        values["mounts"] = tuple(Mount(Path(row["source"]), Path(row["at"]), row["writable"]) for row in data["mounts"])
        values["variables"] = tuple((name, value) for name, value in data["variables"])
        return cls(**values | {"namespaces": frozenset(data["namespaces"])})


def _plain(value: Any) -> Any:
    match value:
        case Path():
            return str(value)
        case frozenset():
            return sorted(value)
        case tuple() | list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value


def _mount_order(mount: Mount, flags: str) -> str:
    source = str(mount.source)
    return f"mount={flags}{'w' * mount.writable}:{len(source)}:{source}:{mount.at}"


def _translate(path: Path, pairs: Iterable[tuple[Path, Path]]) -> Path:
    """A path by the pair whose first part is the nearest around it."""
    around = [(before, after) for before, after in pairs if path.is_relative_to(before)]
    if not around:
        return path
    before, after = max(around, key=lambda pair: len(pair[0].parts))
    return after / path.relative_to(before)


def _is_below(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def _behind_links(mounts: Iterable[Mount], worktree: Path, project: Path | None) -> Iterator[Mount]:
    """The mounts, each where its link leads if the worktree has the same link in its place as the project."""
    for mount in mounts:
        own = worktree / mount.at.relative_to(project) if project and mount.at.is_relative_to(project) else None
        is_same = own and own.is_symlink() and mount.at.is_symlink() and own.readlink() == mount.at.readlink()
        yield replace(mount, at=mount.source) if is_same else mount


def box_for_worktree(
    *,
    worktree: Path,
    git_dir: Path,
    objects: Iterable[Path],
    scratch: Path,
    read: Iterable[Path] = (),
    write: Iterable[Path] = (),
    connect: Iterable[int] = (),
    hosts: Iterable[str] = (),
    private: Iterable[str] = (),
    forward: Iterable[int] = (),
    connections: int = CONNECTIONS,
    enforce: bool = True,
    untrusted: Iterable[str] = (),
    project: Path | None = None,
    mounts: Iterable[Mount] = (),
    hide: Iterable[Path] = (),
    shm_bytes: int = SHM_BYTES,
    namespaces: frozenset[str] | None = None,
    devices: Iterable[Path] = (),
    programs: Iterable[Path] = (),
    variables: Mapping[str, str] = {},
) -> Box:
    """A box that may write a worktree and its own repository, and read the object directories it borrows from.

    Symbolic links are resolved now and never again: a link that a worker puts in the place of a path opens nothing.

    Args:
        project: the directory at whose path the worktree stands inside, where that is possible.
        namespaces: those that are used; None: all that this system allows.
        devices: those besides what every command has.

    Raises:
        Conflict: ``MOUNT_POINT_TAKEN``.
    """
    borrowed, root, state = _resolve(objects), project and project.resolve(), state_around(git_dir.resolve())
    names = shared_objects(borrowed, root, state) if root and state else {}
    box = Box(
        write=_resolve((worktree, git_dir, *write)),
        read=_resolve((*borrowed, *read)),
        scratch=scratch.resolve(),
        connect=tuple(connect),
        hosts=tuple(hosts),
        private=tuple(private),
        forward=tuple(forward),
        connections=connections,
        enforce=enforce,
        untrusted=tuple(untrusted),
        worktree=worktree.resolve(),
        project=root,
        state=state,
        mounts=(*(Mount(path, at) for path, at in names.items()), *_behind_links(mounts, worktree, root)),
        hide=_resolve(hide),
        shm_bytes=shm_bytes,
        devices=(*surroundings.DEVICES, *devices),
        programs=tuple(programs),
        variables=tuple(variables.items()),
        namespaces=abilities().namespaces if namespaces is None else namespaces,
    )._with_links()
    box.require_free()
    return box


def _resolve(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path.resolve() for path in paths))
