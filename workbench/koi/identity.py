"""The identity of a node: an ECDSA P-256 key, and the RID that is derived from it."""

from __future__ import annotations

import base64
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from rid_lib.ext.utils import sha256_hash
from rid_lib.types import KoiNetNode

from workbench.errors import BadInput, Unavailable
from workbench.system import atomic_file

PRIVATE = 0o600
LONGEST_NAME = 128
"""Characters of the name of a node."""
COORDINATE = 32
"""Bytes of each of the two numbers of a signature."""
_ALGORITHM = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True)
class NodeIdentity:
    """A private key, and the node's RID: its name, and the hash of its public key."""

    key: ec.EllipticCurvePrivateKey
    rid: KoiNetNode

    @property
    def public_key(self) -> str:
        """base64 of the DER form."""
        return _encode_key(self.key.public_key())

    def sign(self, message: bytes) -> str:
        """base64 of r and s, 32 bytes each."""
        r, s = decode_dss_signature(self.key.sign(message, _ALGORITHM))
        return base64.b64encode(r.to_bytes(COORDINATE, "big") + s.to_bytes(COORDINATE, "big")).decode()


def load_or_create(path: Path, name: str) -> NodeIdentity:
    """The identity whose key a file has; creates the file, mode 0600, if there is none.

    Args:
        name: of the node; part of its RID.

    Raises:
        BadInput: ``BAD_NODE_NAME``.
        Unavailable: ``KOI_KEY_UNREADABLE``, ``PROJECT_UNWRITABLE``.
    """
    _require_name(name)
    if not os.path.lexists(path):
        _create(path)
    try:
        pem = atomic_file.read(path, private=True)
        key = serialization.load_pem_private_key(pem.encode(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("it has no P-256 key")
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unavailable(
            "KOI_KEY_UNREADABLE",
            f"The key of this node cannot be read from {path}: {reason}. Without it the node is another one: restore "
            "it, or delete it to begin anew.",
        ) from error
    return NodeIdentity(key, KoiNetNode(name, sha256_hash(_encode_key(key.public_key()))))


def _require_name(name: str) -> None:
    if not name or len(name) > LONGEST_NAME or "+" in name or not name.isprintable():
        raise BadInput(
            "BAD_NODE_NAME",
            f"The name of a node has 1 to {LONGEST_NAME} characters, all of them printable, and no +.",
        )


def _create(path: Path) -> None:
    """Create a key, unless another process has done so first."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    atomic_file.replace(temporary, pem, PRIVATE)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink()


def belongs(public_key: str, rid: KoiNetNode) -> bool:
    """Whether a public key is the one that a node's RID names."""
    return bool(sha256_hash(public_key) == rid.hash)


def is_signed(public_key: str, signature: str, message: bytes) -> bool:
    """Whether a signature of a message is by a key; False also if either is malformed."""
    try:
        raw = base64.b64decode(signature, validate=True)
        if len(raw) != 2 * COORDINATE:
            return False
        r, s = (int.from_bytes(part, "big") for part in (raw[:COORDINATE], raw[COORDINATE:]))
        _decode_key(public_key).verify(encode_dss_signature(r, s), message, _ALGORITHM)
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return False
    return True


@lru_cache(maxsize=1_024)
def _decode_key(public_key: str) -> ec.EllipticCurvePublicKey:
    key = serialization.load_der_public_key(base64.b64decode(public_key, validate=True))
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("it is no P-256 key")
    return key


def _encode_key(key: ec.EllipticCurvePublicKey) -> str:
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()
