"""The parameters of operations that take files in pieces; see `workbench.system.file_pieces`."""

from __future__ import annotations

import base64
import binascii
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
