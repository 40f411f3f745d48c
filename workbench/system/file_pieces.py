"""Files that go from one machine to another in pieces: resumed where they ended, compared by their hash when whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

PIECE = 524_288
"""Bytes that are read and sent at once."""
BESIDES = 8_192
"""The most bytes of a request that are not its piece: the name of the file, its hash, and the attempt."""


def fitting(frame_bytes: int) -> int:
    """How many bytes are sent at once if a request, in which they are in base64, has at most `frame_bytes`."""
    return min(PIECE, (frame_bytes - BESIDES) * 3 // 4)


def write(path: Path, offset: int, piece: bytes) -> int:
    """Write a piece, which ends the file for now; the bytes that it has then. A piece behind its end is not written.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        if not piece or offset > size:
            return size
        file.seek(offset)
        file.write(piece)
        return file.truncate()


def has_hash(path: Path, sha256: str) -> bool:
    """Whether a file is what was sent.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256
