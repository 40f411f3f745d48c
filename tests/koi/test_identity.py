"""The key file of a node, and the verification of signatures."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.given import refused
from workbench.errors import Unavailable
from workbench.koi import rids
from workbench.koi.identity import belongs, is_signed, load_or_create


def pem_of(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, password: bytes = b"") -> bytes:
    """A key in a file."""
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def test_a_key_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "koi" / "key.pem"
    os.umask(os.umask(0o000))
    made = load_or_create(path, "ada")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["key.pem"]
    again = load_or_create(path, "ada")
    assert again.rid == made.rid
    assert belongs(again.public_key, made.rid)
    assert rids.parse(str(made.rid)) == made.rid
    assert load_or_create(path, "bob").rid.hash == made.rid.hash


@pytest.mark.long
def test_processes_that_begin_at_once_have_the_same_key(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from workbench.koi.identity import load_or_create; sys.stdin.readline();"
        f"print(load_or_create(pathlib.Path({str(tmp_path / 'key.pem')!r}), 'ada').rid)"
    )
    argv = [sys.executable, "-c", code]
    begun = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in begun:
        assert process.stdin is not None
        print("go", file=process.stdin, flush=True)
    [rid] = {process.communicate()[0] for process in begun}
    assert "orn:koi-net.node:ada+" in rid
    assert os.listdir(tmp_path) == ["key.pem"]


GARBAGE = {
    "empty": b"",
    "text": b"no key",
    "bytes": b"\xff\x00",
    "large": b"x" * 2_000_000,
    "cut short": pem_of(ec.generate_private_key(ec.SECP256R1()))[:100],
    "another curve": pem_of(ec.generate_private_key(ec.SECP384R1())),
    "another kind": pem_of(ed25519.Ed25519PrivateKey.generate()),
    "with a password": pem_of(ec.generate_private_key(ec.SECP256R1()), b"secret"),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_file_without_a_key_is_reported_and_left_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    error = refused("KOI_KEY_UNREADABLE", load_or_create, path, "ada")
    assert "restore it, or delete it" in error.message
    assert isinstance(error, Unavailable)
    assert path.read_bytes() == content


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    load_or_create(path, "ada")
    for mode in (0o640, 0o604, 0o666):
        path.chmod(mode)
        with pytest.raises(Unavailable, match="others have access"):
            load_or_create(path, "ada")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    load_or_create(path, "ada")
    os.chown(path, 65_534, 65_534)
    with pytest.raises(Unavailable, match="another user"):
        load_or_create(path, "ada")


def test_no_link_is_followed_no_directory_read_and_none_made_below_a_file(tmp_path: Path) -> None:
    load_or_create(tmp_path / "real.pem", "ada")
    (tmp_path / "link.pem").symlink_to("real.pem")
    (tmp_path / "dangling.pem").symlink_to("nothing")
    (tmp_path / "directory.pem").mkdir()
    os.mkfifo(tmp_path / "pipe.pem", 0o600)
    for name in ("link", "dangling", "directory", "pipe"):
        refused("KOI_KEY_UNREADABLE", load_or_create, tmp_path / f"{name}.pem", "ada")
    refused("PROJECT_UNWRITABLE", load_or_create, tmp_path / "real.pem" / "key.pem", "ada")


@pytest.mark.parametrize("name", ["", "a+b", "a\nb", "x" * 129, "\x00"])
def test_a_name_that_would_give_no_rid_is_refused(tmp_path: Path, name: str) -> None:
    refused("BAD_NODE_NAME", load_or_create, tmp_path / "key.pem", name)


def test_a_signature_is_of_one_message_by_one_key(tmp_path: Path) -> None:
    ada, bob = (load_or_create(tmp_path / f"{name}.pem", name) for name in ("ada", "bob"))
    signature = ada.sign(b"message")
    assert is_signed(ada.public_key, signature, b"message")
    assert not is_signed(ada.public_key, signature, b"Message")
    assert not is_signed(bob.public_key, signature, b"message")
    assert not belongs(bob.public_key, ada.rid)


def test_malformed_signatures_and_keys_are_wrong_and_no_failure(tmp_path: Path) -> None:
    ada = load_or_create(tmp_path / "ada.pem", "ada")
    zeros, full = base64.b64encode(bytes(64)).decode(), base64.b64encode(b"\xff" * 64).decode()
    for signature in ("", "é", "AAAA", "=", ada.sign(b"")[:-1], zeros, full, "A" * 1_000):
        assert not is_signed(ada.public_key, signature, b"")
    p384 = ec.generate_private_key(ec.SECP384R1()).public_key()
    other = p384.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    unknown = base64.b64encode(base64.b64decode(ada.public_key).replace(b"\x03\x01\x07", b"\x03\x01\x7f")).decode()
    for key in ("", "é", "AAAA", ada.public_key[:-4], base64.b64encode(other).decode(), unknown):
        assert not is_signed(key, ada.sign(b""), b"")
