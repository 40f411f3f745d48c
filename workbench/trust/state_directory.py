"""The state directory of a project, `.aiswarm/`: who may create it, and when its content may be used.

A clone or an unpacked archive can bring an `.aiswarm/` with a store, tokens and worktrees of a stranger. Workbench uses
a state directory only if this user's Workbench created it: a secret in it matches the one that is recorded outside the
repository. It refuses state that git tracks, because a later pull could bring that. Only the entries in `SHARED` may
come with a repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from workbench.errors import NotFound, Refused, Unavailable
from workbench.git.run import run
from workbench.present.inert import inert_line
from workbench.state import outside, shares, user_files
from workbench.state.database_note import DatabaseNote
from workbench.state.outside import ORIGIN
from workbench.state.restore_note import require_restored
from workbench.state.root import STATE, enclosing_repository, identity, require_own
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings
from workbench.system import atomic_file, file_lock
from workbench.system.users import owner

SHARED = ("agents", "mcp.json", "personas", "profiles", "settings.toml")
"""Entries that a repository may bring, as files and directories, but not as links."""
IGNORED = "*\n!personas/\n!personas/**\n!profiles/\n!profiles/**\n!agents/\n!agents/**\n!mcp.json\n!settings.toml\n"
NODE_OF_ANOTHER = "koi/copied_from"
"""The file that names the project whose node key a copy has, below the state directory of the copy."""
GIT_SECONDS = 30.0
_GITIGNORE = ".gitignore"
_LINK = "120000"
_NAMES_SHOWN = 10
_OBJECTS = re.compile(r"objects(-\d+)?")
"""The links by which worktrees borrow objects of the repository; they are made anew before they are used."""
_MAY_BE_LINKS = (*SHARED, "allowlist.txt")


def create(settings: Settings) -> None:
    """Create the state directory, with mode 0700, unless it exists and may be used. Blocks.

    Raises:
        Refused: see `check`. Unavailable: ``PROJECT_UNWRITABLE``, ``CONFIG_UNWRITABLE``; see `check`.
    """
    check(settings.project)
    try:
        _make_private(settings.home)
    except OSError as error:
        raise Unavailable(
            "PROJECT_UNWRITABLE",
            f"Workbench cannot write to {settings.home}: {error.strerror}. "
            "Make the directory writable, or choose another project with WORKBENCH_PROJECT.",
            path=str(settings.home),
        ) from error
    adopt(settings.project)


def check(project: Path) -> None:
    """Refuse a state directory that came with the repository, or belongs to another user. Blocks.

    Raises:
        Refused: ``STATE_NOT_YOURS``, ``STATE_ELSEWHERE``, ``STATE_TRACKED``, ``STATE_NOT_TRUSTED``.
        Unavailable: git failed.
    """
    require_own(project)
    home = project / STATE
    if not os.path.lexists(home):
        return
    if names := tracked(project):
        raise Refused(
            "STATE_TRACKED",
            f"Git tracks {_list(names)}, so nothing of it is used. It belongs in no repository: remove it with "
            f"`git rm -r --cached`, and move it out of {home}.",
            files=names,
        )
    if names := unknown(project):
        raise Refused(
            "STATE_NOT_TRUSTED",
            f"{_list(names)} in {project}: {_why_unknown(home)}",
            files=names,
        )
    _require_unlinked(home)


def unknown(project: Path) -> list[str]:
    """The state that this user's Workbench did not create here, and links in place of shared files."""
    home = project / STATE
    if not home.is_dir() or _is_own(project):
        return []
    state = [entry for entry in home.iterdir() if not _is_harmless(entry.name)]
    links = [path for name in SHARED for path in _walk(home / name) if path.is_symlink()]
    if (state or links) and _is_own(project):  # another process has created it meanwhile
        return []
    return sorted(path.relative_to(project).as_posix() for path in (*state, *links))


def tracked(project: Path) -> list[str]:
    """The state that git tracks in a project, and links that it tracks in place of shared files.

    Raises:
        Unavailable: git failed.
    """
    repository = enclosing_repository(project)
    if repository is None or _has_none_for_sure(repository / ".git" / "index"):
        return []
    # The variables override what the configuration says about the place, and nothing is fetched.
    places = {"GIT_DIR": str(repository / ".git"), "GIT_WORK_TREE": str(repository)}
    offline = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
    try:
        result = run(["ls-files", "-z", "--stage", "--", f":(icase){STATE}"], project, places | offline, GIT_SECONDS)
    except Unavailable as error:
        if error.code == "GIT_MISSING":
            return []
        raise
    if "not a git repository" in result.err:
        return []
    fields = (os.fsdecode(field).partition("\t") for field in result.expect((0,)).fields)
    return sorted(path for entry, _, path in fields if entry.startswith(_LINK) or not _is_shared(path))


def _has_none_for_sure(index: Path) -> bool:
    """Whether git's index is sound and without the name of a state directory. If not, git has to be asked.

    Each command asks, and to start git takes a hundred times as long. The paths of an index are not all written out if
    it shares their beginnings (version 4), or has some of them in another file (an extension called `link`).
    """
    try:
        content = index.read_bytes() if index.is_file() else b""
    except OSError:
        return False
    names = content.lower()
    return (
        content[:8] in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")
        and hashlib.sha1(content[:-20], usedforsecurity=False).digest() == content[-20:]
        and STATE.encode() not in names
        and b"link" not in names
    )


def adopt(project: Path) -> None:
    """Record that the state directory is this user's, whatever its content. Blocks.

    Files about processes that use the project are dropped, unless they run: in a copy, they are about the original. A
    copy with the key of the original's node notes that the node is not its own: see `NODE_OF_ANOTHER`.

    Raises:
        Refused: ``STATE_ELSEWHERE``. Unavailable: ``PROJECT_UNWRITABLE``, ``CONFIG_UNWRITABLE``.
    """
    if _is_own(project):
        return
    home = project / STATE
    _require_unlinked(home)
    if kept := _secret_to_keep(home):
        _note_inode(home, kept)
    with user_files.record_lock(project):
        if not _is_own(project):
            _make_private(home)
            _drop_unused(home)
            _note_copied_node(project)
            secret, inode = kept or secrets.token_hex(32), home.stat().st_ino if kept else None
            record = user_files.load_record(project)
            trusted = record.trusted if record.origin is None else {}  # of another project that was here before
            user_files.update_record(project, origin=secret, inode=inode, trusted=trusted)
            atomic_file.replace(home / _GITIGNORE, IGNORED)
            atomic_file.replace(home / ORIGIN, secret, mode=0o600)


def require(settings: Settings) -> None:
    """Refuse a directory that is no project yet.

    Raises:
        NotFound: ``NO_PROJECT``. Refused, Unavailable: see `check`, `has_store`.
    """
    check(settings.project)
    if not has_store(settings):
        raise NotFound("NO_PROJECT", f"{settings.project} is no project yet. Run `workbench init` there.")


def has_store(settings: Settings) -> bool:
    """Whether the project has a store: on PostgreSQL, it was opened here before.

    Raises:
        Unavailable: ``STORE_INCOMPLETE``: it had one, which is gone. Conflict: ``RESTORE_UNFINISHED``.
    """
    from workbench.store.examination import require_there

    require_restored(settings.project)
    if DatabaseNote.of(settings.home) is not None:
        return True
    return settings.database_url is None and require_there(settings.database)


def _is_own(project: Path) -> bool:
    """Whether this user's Workbench made it, here or at another path that leads to the same directory."""
    home, record = project / STATE, user_files.load_record(project)
    if (secret := _read_secret(home)) is None:
        return False
    if record.origin is not None and secrets.compare_digest(secret, record.origin):
        return record.inode in (None, home.stat().st_ino)
    own_identity = identity(home)
    others = (record for record in user_files.all_records() if secrets.compare_digest(record.origin or "", secret))
    return bool(secret) and any(identity(Path(record.project) / STATE) == own_identity for record in others)


def _secret_to_keep(home: Path) -> str | None:
    """The secret of this user's directory, unless it is a copy: it counts on at its other paths."""
    secret = _read_secret(home)
    is_recorded = any(record.origin == secret for record in user_files.all_records()) if secret else False
    return secret if is_recorded and _find_original(home) is None else None


def _note_inode(home: Path, secret: str) -> None:
    """Note in the records of other paths which directory it is whose secret they have."""
    for record in [record for record in user_files.all_records() if record.origin == secret]:
        with user_files.record_lock(Path(record.project)):
            user_files.update_record(Path(record.project), inode=home.stat().st_ino)


def _why_unknown(home: Path) -> str:
    origin = home / ORIGIN
    if owner(origin) == os.geteuid() and (mode := stat.S_IMODE(origin.lstat().st_mode)) & 0o077:
        return (
            f"others may read {origin} (mode {mode:o}), which shows that you created this. If you or a colleague "
            "opened it to them, run `workbench trust`, which makes it private again; otherwise remove it."
        )
    return (
        "you did not create this here with Workbench. It may have come with the repository, or you moved the project. "
        "If it is yours, run `workbench trust`; otherwise remove it."
    )


def _drop_unused(home: Path) -> None:
    server = ServerFile(home / "server.json")
    if server.load().info is not None:  # it was moved while its server runs
        return
    with suppress(OSError):
        server.path.unlink(missing_ok=True)
    shares.holders(home / "shares")  # which removes what is not held
    with suppress(OSError):
        (home / "shares").rmdir()
    if (lock := home / "server.lock").exists():
        with file_lock.held(lock, remove=True):
            pass


def _require_unlinked(home: Path) -> None:
    if names := _find_links(home):
        raise Refused(
            "STATE_ELSEWHERE",
            f"{_list(names)} in {home} is a link, and may lead to the state of another project. "
            "Replace it with what it leads to, or remove it.",
            files=names,
        )


def _note_copied_node(project: Path) -> None:
    """Note in a copy whose original still exists that the key of its node is the original's."""
    home = project / STATE
    if (home / "koi" / "key.pem").exists() and (original := _find_original(home)) is not None:
        atomic_file.replace(home / NODE_OF_ANOTHER, original, mode=0o600)


def _find_original(home: Path) -> str | None:
    """The project whose state directory this is a copy of; None if it was moved, or created elsewhere."""
    secret = _read_secret(home)
    for record in user_files.all_records() if secret else ():
        other = Path(record.project) / STATE
        if record.origin == secret == _read_secret(other) and identity(other) != identity(home):
            return record.project
    return None


def _read_secret(home: Path) -> str | None:
    try:
        return atomic_file.read(home / ORIGIN, private=True)
    except (OSError, UnicodeDecodeError):
        return None


def _find_links(home: Path) -> list[str]:
    """The links among the state, by path below it; a person may link shared entries, and the allowlist.

    Those to the repository's objects are Workbench's own: they are led there anew whenever a worktree is used.
    """
    places = (home, home / "worktrees", home / "repositories")
    entries = (entry for place in places if place.is_dir() for entry in place.iterdir() if entry.is_symlink())
    foreign = (path for path in entries if not (_is_of_worktree(path, home) or _is_objects(path, home)))
    return sorted(str(path.relative_to(home)) for path in foreign if path.name not in _MAY_BE_LINKS)


def _is_objects(link: Path, home: Path) -> bool:
    return link.parent == home and _OBJECTS.fullmatch(link.name) is not None


def _is_of_worktree(link: Path, home: Path) -> bool:
    """Whether a link shows the person where a worktree is, as Workbench makes them; it is not followed."""
    return link.parent == home / "worktrees" and outside.is_within(link)


def _is_harmless(name: str) -> bool:
    """Whether an entry of the state directory is shared, or was left by `adopt` or is being written by it."""
    return name in (*SHARED, _GITIGNORE) or name.startswith((f".{_GITIGNORE}.", f".{ORIGIN}."))


def _make_private(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_mode & 0o077:
        home.chmod(0o700)


def _walk(path: Path) -> Iterator[Path]:
    yield path
    for directory, directories, files in os.walk(path):  # which follows no link
        yield from (Path(directory, name) for name in (*directories, *files))


def _is_shared(path: str) -> bool:
    first, _, below = path.partition("/")
    return first == STATE and below.partition("/")[0] in SHARED


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(inert_line, names[:_NAMES_SHOWN])) + more
