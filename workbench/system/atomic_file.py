"""Writes files atomically, so that no crash or other writer leaves a partial file; reads files of unknown origin."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.errors import Unavailable

EVERYBODY = 0o666
"""The umask decides who may read it."""
LARGEST = 1 << 20
"""Bytes of the largest file that `read` reads."""


def replace(path: Path, text: str, mode: int = EVERYBODY) -> None:
    """Replace a file atomically by one with a text, in UTF-8; creates missing directories.

    If several writers do this at once, the last one wins.

    Args:
        mode: the mode of the new file, before the umask. The mode of a replaced file is not kept.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``; the file is unchanged.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(temporary, text, mode)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write, which then replaces `path` at once; if writing fails, `path` is unchanged.

    A link is followed. Anything but a regular file, such as a pipe, is written directly.

    Raises:
        OSError: it cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    with TemporaryDirectory(prefix=".saving-", dir=path.parent) as directory:
        temporary = Path(directory) / path.name
        yield temporary
        temporary.replace(path)


def read(path: Path, *, private: bool = False, largest: int = LARGEST) -> str:
    """The text of a regular file, in UTF-8. Follows no link, and never waits, as reading a pipe would.

    Args:
        private: refuse a file that belongs to another user, or that others may read or write.
        largest: bytes of the largest file that is read.

    Raises:
        OSError: it cannot be read, is not a regular file, is larger than that, or is not private.
        UnicodeDecodeError: it is not UTF-8.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP or not path.is_symlink():
            raise
        raise OSError(errno.ELOOP, "it is a link, and has to be the file itself", str(path)) from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if private and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077):
            raise OSError(errno.EPERM, "it belongs to another user, or others have access to it", str(path))
        content = file.read(largest + 1)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest:,} bytes", str(path))
    return content.decode("utf-8")


def tail(path: Path, size: int) -> str:
    """The last `size` bytes of a file, as text.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size).decode("utf-8", "replace")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk.

    Raises:
        OSError: they cannot be written.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems do that for directories by themselves
            raise
    finally:
        os.close(descriptor)


def _write(path: Path, text: str, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
