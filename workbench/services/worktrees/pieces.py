"""Files that come over the server's port in pieces: resumed where they ended, and compared by their hash when whole."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput

MOST_BYTES = 1 << 50

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the whole file.")]
Offset = Annotated[int, Field(ge=0, le=MOST_BYTES, description="Where the piece begins, in bytes.")]
FileBytes = Annotated[int, Field(ge=1, le=MOST_BYTES, description="Of the whole file.")]
Piece = Annotated[str, Field(description="The piece, in base64; empty to ask how much has arrived.")]


def decoded(data: str) -> bytes:
    """The bytes of a piece.

    Raises:
        BadInput: ``BAD_PIECE``.
    """
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput("BAD_PIECE", f"The piece is not base64: {error}.") from None


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
