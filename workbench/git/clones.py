"""Creates a worktree's own repository, which borrows only the objects of the user's repository.

Once created, it is writable by workers. So nothing in it is trusted later, except what `workbench.git.imports` checks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from secrets import token_hex

from workbench.errors import Unavailable
from workbench.git import lfs
from workbench.git.plumbing import Plumbing
from workbench.git.run import NOBODY, GitResult, run
from workbench.state.home import home
from workbench.state.root import shared_objects, state_around
from workbench.system.tree_removal import remove_tree

_COPIED = re.compile(
    r"core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|longpaths)"
    r"|filter\..*|merge\..+\..*|diff\..+\.(binary|xfuncname|algorithm)",
    re.IGNORECASE | re.DOTALL,
)
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|smudge|process|required)", re.IGNORECASE | re.DOTALL)
_OWN = {
    "core.bare": "false",
    "core.splitIndex": "false",
    "gc.auto": "0",
    "lfs.skipDownloadErrors": "true",
    "maintenance.auto": "false",
    "receive.denyCurrentBranch": "refuse",
}
_LITTER = (
    *("__pycache__/", "*.pyc", ".pytest_cache/", ".ruff_cache/", ".mypy_cache/", ".ipynb_checkpoints/"),
    *(".DS_Store", "node_modules/", ".coverage", ".coverage.*", ".hypothesis/", "*.egg-info/"),
)
"""Patterns of files that programs leave behind and nobody commits on purpose."""
_MAX_DEPTH = 5
"""How many levels of alternates git follows."""
_WHOLE = ("core.splitIndex=false", "core.sparseCheckout=false", "core.untrackedCache=false", "index.sparse=false")


def make(repository: Plumbing, git_dir: Path, branch: str | None, commit: str) -> None:
    """Fill the empty directory `git_dir` with a repository that is on `branch` (None: detached)."""
    _initialise(repository, git_dir)
    _borrow(repository, git_dir)
    _configure(repository, git_dir)
    _copy_refs(repository, git_dir, branch)
    ref = f"refs/heads/{branch}" if branch else "HEAD"
    if branch:
        _run_inside(repository, git_dir, "symbolic-ref", "HEAD", ref)
    _run_inside(repository, git_dir, "update-ref", "--no-deref", "--create-reflog", ref, commit)


def fill(repository: Plumbing, path: Path, git_dir: Path, commit: str) -> None:
    """Write the files of `commit` into the empty directory `path`, without the user's filters.

    A worker may have written the files, and a filter such as ``sh tools/strip.sh`` would run one of them.
    """
    places = {"GIT_INDEX_FILE": str(git_dir / "index"), "GIT_WORK_TREE": str(path)}
    env = {**places, **_as_variables(disabled(filters(repository)))}
    options = ("read-tree", "--reset", "-u", "--no-recurse-submodules", commit)
    repository.write(*options, settings=_WHOLE, env=env, limit=repository.checkout_limit)
    _exclude_litter(repository, git_dir, places)


def _exclude_litter(repository: Plumbing, git_dir: Path, places: Mapping[str, str]) -> None:
    """Have git ignore litter in the new worktree, but for kinds that the project itself tracks files of.

    The rules come before the user's own, which may take them back.
    """
    options = ("--cached", "--ignored", "-z", *(f"--exclude={pattern}" for pattern in _LITTER))
    tracked = repository.write("ls-files", *options, env={**places, "GIT_OPTIONAL_LOCKS": "0"}).fields
    names = {name for path in tracked for name in os.fsdecode(path).split("/")}
    rules = [pattern for pattern in _LITTER if not any(fnmatchcase(name, pattern.rstrip("/")) for name in names)]
    file = git_dir / "info" / "exclude"
    file.write_bytes("".join(f"{rule}\n" for rule in rules).encode() + file.read_bytes())


def filters(repository: Plumbing) -> list[str]:
    """The names of the filters in the user's configuration."""
    matches = (_FILTER.fullmatch(key) for key, _ in _settings(repository))
    return list(dict.fromkeys(match[1] for match in matches if match))


def disabled(names: Sequence[str]) -> dict[str, str]:
    """Settings that disable filters."""
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"filter.{name}.{key}": value for name in names for key, value in values.items()}


def _as_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as variables. As options (``-c``) their names could not contain an equals sign."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def object_directories(git_dir: Path) -> list[Path]:
    """The object directory of a repository, and those it borrows from."""
    directories: dict[Path, None] = {}
    _follow(Path(os.path.realpath(git_dir / "objects")), directories, _MAX_DEPTH)
    return list(directories)


def _follow(objects: Path, directories: dict[Path, None], depth: int) -> None:
    if objects in directories or not objects.is_dir():
        return
    directories[objects] = None
    alternates_file = objects / "info" / "alternates"
    if depth and alternates_file.is_file():
        for line in alternates_file.read_bytes().split(b"\n"):
            if line and not line.startswith(b"#"):
                _follow(Path(os.path.realpath(objects / os.fsdecode(_unquote(line)))), directories, depth - 1)


def _unquote(line: bytes) -> bytes:
    if not (line.startswith(b'"') and line.endswith(b'"')):
        return line
    return line[1:-1].decode("unicode_escape", "surrogateescape").encode("latin-1", "ignore")


def _initialise(repository: Plumbing, git_dir: Path) -> None:
    format_ = repository.read("rev-parse", "--show-object-format").text
    options = ("--quiet", "--bare", "--template=", f"--object-format={format_}", "--initial-branch=main")
    run(["init", *options, str(git_dir)], repository.root, {}, repository.limit).expect((0,))


def _borrow(repository: Plumbing, git_dir: Path) -> None:
    (git_dir / "objects" / "info" / "alternates").write_bytes(alternates(repository, git_dir))
    shallow = repository.git_dir / "shallow"
    if shallow.is_file():
        (git_dir / "shallow").write_bytes(shallow.read_bytes())


def alternates(repository: Plumbing, git_dir: Path) -> bytes:
    """The list of the object directories that the repository `git_dir` of a worktree borrows from.

    Those that are moved and copied together with it are named relative to its own, by links in the state directory: in
    a box in which the worktree stands at the project's path, what the links lead to is there.
    """
    root, own = os.path.realpath(repository.root), os.path.realpath(git_dir / "objects")
    borrowed, is_within = object_directories(repository.git_dir), Path(own).is_relative_to(root)
    linked = [*borrowed, *lfs_stores(borrowed)]
    names = link_objects(linked, Path(root), state_around(Path(own))) if is_within else {}
    lines = [
        os.path.relpath(names.get(path, path), own) if is_within and path.is_relative_to(root) else str(path)
        for path in borrowed
    ]
    # Git LFS does not follow a relative name; git takes the same directory once.
    lines += [str(names.get(path, path)) for path in borrowed if lfs_stores([path])]
    return os.fsencode("".join(f"{quoted(line)}\n" for line in dict.fromkeys(lines)))


def lfs_stores(borrowed: Sequence[Path]) -> list[Path]:
    """Where Git LFS keeps the contents of the files that these object directories have pointers to."""
    return [store for path in borrowed if (store := lfs.store(path.parent)).is_dir()]


def link_objects(borrowed: Sequence[Path], top: Path, state: Path | None) -> dict[Path, Path]:
    """Make the links by which repositories of worktrees name object directories; return them."""
    names = shared_objects(borrowed, top, state) if state else {}
    for path, link in names.items():
        target = os.path.relpath(path, link.parent)
        if link.is_symlink() and str(link.readlink()) == target:
            continue
        if not link.is_symlink():  # a copy of the project by a program that follows links
            remove_tree(link)
        temporary = link.with_name(f".{link.name}.{token_hex(8)}.tmp")
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            temporary.symlink_to(target)
            temporary.replace(link)
        except OSError as error:
            raise Unavailable("WORKTREE_PATH_UNUSABLE", f"Cannot make the link {link}: {error}.") from error
    return names


def quoted(path: str, also: str = "") -> str:
    """A path as git expects it in a list of object directories; `also` are characters that need quotes."""
    if not path.startswith(('"', "#")) and not set(path) & {"\n", *also}:
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _configure(repository: Plumbing, git_dir: Path) -> None:
    """Its settings. They do not name the worktree, which has two paths: its `.git` leads here."""
    copied = [(key, value) for key, value in _settings(repository) if _COPIED.fullmatch(key)]
    text = "".join(_setting(key, value) for key, value in [*copied, *_OWN.items()])
    with (git_dir / "config").open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    for name, key in (("exclude", "core.excludesFile"), ("attributes", "core.attributesFile")):
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info" / name).write_bytes(b"\n".join(user_rules(repository, name, key)))


def _settings(repository: Plumbing) -> Iterator[tuple[str, str | None]]:
    for row in repository.read("config", "--list", "--includes", "-z").fields:
        key, equals, value = os.fsdecode(row).partition("\n")
        yield key, value if equals else None


def _setting(key: str, value: str | None) -> str:
    section, _, name = key.rpartition(".")
    head, _, middle = section.partition(".")
    escaped = middle.replace("\\", "\\\\").replace('"', '\\"')
    title = f'[{head} "{escaped}"]' if middle else f"[{head}]"
    if value is None:
        return f"{title}\n\t{name}\n"
    value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'{title}\n\t{name} = "{value}"\n'


def user_rules(repository: Plumbing, name: str, key: str) -> Iterator[bytes]:
    """The user's ignore rules or attributes, both global and of this repository."""
    configured = repository.read("config", "--type=path", key, ok=(0, 1)).text
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / "git"
    global_file = repository.root / configured if configured else settings / name.replace("exclude", "ignore")
    for file in (global_file, repository.git_dir / "info" / name):
        if file.is_file():
            yield file.read_bytes()
    yield b""


def _copy_refs(repository: Plumbing, git_dir: Path, branch: str | None) -> None:
    """Give the worktree the user's current branches and tags, to compare and merge with."""
    own = f"refs/heads/{branch}"
    tips = repository.tips("refs/heads", "refs/tags", "refs/remotes")
    lines = [f"{commit} {name}\n" for name, commit in tips.items() if name != own]
    (git_dir / "packed-refs").write_bytes(os.fsencode("".join(lines)))


def _run_inside(repository: Plumbing, git_dir: Path, *arguments: str) -> GitResult:
    """Run git in a repository that was just created, before any worker can write to it."""
    places = {**NOBODY, "GIT_DIR": str(git_dir)}
    return run(arguments, repository.root, places, repository.limit).expect((0,))
