"""Reads the secrets that references name: from the environment, a file, 1Password, or the system's keyring.

What is read is in no error, log or representation here. Callers keep it so: they pass it on to the program or server
that the operator trusted with it, and store it nowhere.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.errors import Unavailable
from workbench.present.inert import inert_line
from workbench.rules.definitions.secrets.references import SecretReference, SecretSource
from workbench.state.home import expanded
from workbench.state.root import STATE
from workbench.system import atomic_file, uninterrupted

LARGEST = 64 << 10
"""Characters of the longest secret."""
PROGRAM_SECONDS = 30.0
"""How long 1Password's program may take; it may ask the person for a fingerprint."""
_OWN_VARIABLES = "WORKBENCH_"
_REASON_LIMIT = 200


def resolve(reference: SecretReference, project: Path) -> str:
    """The secret that a reference names. Blocks.

    Args:
        project: relative paths of files begin here. Nothing in its `.aiswarm` is read.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``; `details.reference` is the reference.
    """
    try:
        secret = _READERS[reference.source](reference.place, project)
    except _UnresolvedError as error:
        raise _unresolved(reference, str(error)) from None
    if not secret:
        raise _unresolved(reference, "it is empty")
    if len(secret) > LARGEST or "\0" in secret:
        raise _unresolved(reference, f"it is longer than {LARGEST:,} characters, or no text")
    return secret


def is_unset(reference: SecretReference) -> bool:
    """Whether a reference is to a variable that this process has not."""
    return reference.source is SecretSource.ENV and reference.place not in os.environ


class _UnresolvedError(Exception):
    """Why a secret cannot be read."""


def _unresolved(reference: SecretReference, reason: str) -> Unavailable:
    shown = inert_line(str(reference))
    return Unavailable("SECRET_UNRESOLVED", f"The secret {shown} cannot be read: {reason}.", reference=shown)


def _from_environment(name: str, project: Path) -> str:
    if name.upper().startswith(_OWN_VARIABLES):
        raise _UnresolvedError(f"variables that begin with {_OWN_VARIABLES} are Workbench's own")
    if name not in os.environ:
        raise _UnresolvedError(
            "there is no such variable where it is to be read. Set it there, and start the server again"
        )
    return os.environ[name]


def _from_file(place: str, project: Path) -> str:
    try:
        path = Path(os.path.realpath(project / expanded(place)))
        if path.is_relative_to(os.path.realpath(project / STATE)):
            raise _UnresolvedError("files of Workbench hold no secrets for agents")
        return atomic_file.read(path).rstrip("\r\n")
    except UnicodeDecodeError:
        raise _UnresolvedError("it is not UTF-8 text") from None
    except (OSError, RuntimeError, ValueError) as error:  # such as an unknown user after `~`
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is no path"
        known = isinstance(error, OSError) and error.errno in (errno.EINVAL, errno.EFBIG)
        raise _UnresolvedError("it is not a regular file of text, or too large" if known else reason) from None


def _from_one_password(place: str, project: Path) -> str:
    if (program := shutil.which("op")) is None:
        raise _UnresolvedError("the program `op` of 1Password is not installed")
    command = [program, "read", "--no-newline", f"op://{place}"]
    try:
        # 1Password asks the person again for each terminal.
        done = uninterrupted.run(command, seconds=PROGRAM_SECONDS, keeps_session=True)
        if done.returncode:
            reason = inert_line(done.stderr.decode("utf-8", "replace").strip()[:_REASON_LIMIT])
            raise _UnresolvedError(f"`op read` ended with {done.returncode}: {reason or 'it gave no reason'}")
        return done.stdout.decode("utf-8").rstrip("\r\n")
    except subprocess.TimeoutExpired:
        reason = f"`op read` did not answer within {PROGRAM_SECONDS:g} s. Sign in with `op signin`"
        raise _UnresolvedError(reason) from None
    except UnicodeDecodeError:
        raise _UnresolvedError("it is not UTF-8 text") from None
    except OSError as error:
        raise _UnresolvedError(f"`op` cannot be started: {error.strerror}") from None


def _from_keyring(place: str, project: Path) -> str:
    service, _, name = place.rpartition("/")
    if not service or not name:
        raise _UnresolvedError("it must be keyring://service/name")
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise _UnresolvedError("the package keyring is not installed: `pip install keyring`") from None
    try:
        found = keyring.get_password(service, name)
    except (KeyringError, OSError, RuntimeError) as error:
        raise _UnresolvedError(f"the keyring refused it ({type(error).__name__})") from None
    if found is None:
        raise _UnresolvedError("the keyring has no such entry")
    return found


_READERS: Mapping[SecretSource, Callable[[str, Path], str]] = {
    SecretSource.ENV: _from_environment,
    SecretSource.FILE: _from_file,
    SecretSource.ONE_PASSWORD: _from_one_password,
    SecretSource.KEYRING: _from_keyring,
}
