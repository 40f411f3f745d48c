"""The person's keys of model providers: where each is kept, in a file of her own outside every repository.

The file holds references (`env://`, `file://`, `op://`, `keyring://`). A key that she types is kept in the system's
keyring, or without one in a file that only she can read.
"""

from __future__ import annotations

import json
import shlex
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.definition_files.secret_sources import resolve
from workbench.errors import BadInput, NotFound, Unavailable
from workbench.present.inert import inert_line
from workbench.rules.definitions.secrets.references import SecretReference, SecretSource, parse
from workbench.rules.models.upstream import PROVIDERS, ProviderKey, UpstreamProvider
from workbench.state import user_files
from workbench.state.home import expanded
from workbench.system import atomic_file

SERVICE = "workbench"
"""The name of Workbench in the keyring."""


class KeptKey(BaseModel):
    """A key that is kept.

    Args:
        reference: where it is.
        base: the provider's address; empty: the usual one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reference: str = Field(max_length=2_000)
    base: str = Field("", max_length=2_000)


def path() -> Path:
    """The file of the references."""
    return user_files.directory() / "model_keys.json"


def load() -> dict[str, KeptKey]:
    """The keys that are kept, by provider. Blocks.

    Raises:
        Unavailable: ``KEYS_UNREADABLE``.
    """
    try:
        stored: Mapping[str, Any] = json.loads(atomic_file.read(path(), private=True))
        return {name: KeptKey.model_validate(value) for name, value in stored.items() if name in PROVIDERS}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, ValidationError, AttributeError):
        raise Unavailable(
            "KEYS_UNREADABLE",
            f"{path()} cannot be read, or others can write it. Correct it, or remove it and run `workbench keys add`.",
        ) from None


def read(provider: UpstreamProvider, kept: KeptKey, project: Path, base: str = "") -> ProviderKey:
    """A key that is kept, as it is used. Blocks.

    Args:
        base: the provider's address if none is kept with the key.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``.
    """
    value = resolve(_reference(kept.reference), project).strip()
    address = kept.base or base or provider.default_base
    return ProviderKey(provider.id, address, provider.keys[0].header, kept.reference, value)


def file_of(reference: str, project: Path) -> Path | None:
    """The file that a reference names; None if it names none."""
    parsed = parse(reference)
    if parsed is None or parsed.source is not SecretSource.FILE:
        return None
    try:
        return project / expanded(parsed.place)
    except RuntimeError:  # such as an unknown user after `~`
        return None


def exposed(reference: str, project: Path) -> str:
    """A sentence about a file with a key that others can read; empty if there is none. Blocks."""
    file = file_of(reference, project)
    try:
        others = file is not None and stat.S_IMODE(file.stat().st_mode) & 0o077
    except (OSError, ValueError):
        return ""
    return f"Others can read {file}: run `chmod 600 {shlex.quote(str(file))}`." if others else ""


def keep_reference(provider: UpstreamProvider, reference: str, base: str = "") -> KeptKey:
    """Keep where the key of a provider is; one that she typed before is kept no longer. Blocks.

    Raises:
        BadInput: ``BAD_REFERENCE``. Unavailable: ``PROJECT_UNWRITABLE``.
    """
    kept = KeptKey(reference=str(_reference(reference)), base=base)
    before = load()
    _store(before | {provider.id: kept})
    _drop(provider, before.get(provider.id), kept.reference)
    return kept


def keep(provider: UpstreamProvider, key: str, base: str = "") -> KeptKey:
    """Keep a key in the keyring, or in a private file if there is none. Blocks.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``, ``KEYS_UNREADABLE``.
    """
    load()  # what is there has to be readable before anything is written
    if _into_keyring(provider.id, key):
        return keep_reference(provider, f"keyring://{SERVICE}/{provider.id}", base)
    atomic_file.replace(_file(provider), key, mode=0o600)
    return keep_reference(provider, f"file://{_file(provider)}", base)


def forget(provider: UpstreamProvider) -> KeptKey:
    """Keep the key of a provider no longer, nor where it is. Blocks.

    Raises:
        NotFound: ``KEY_NOT_FOUND``. Unavailable: ``PROJECT_UNWRITABLE``, ``KEYS_UNREADABLE``.
    """
    kept = load()
    if provider.id not in kept:
        raise NotFound("KEY_NOT_FOUND", f"No key of {provider.name} is kept. `workbench keys list` shows what is used.")
    forgotten = kept.pop(provider.id)
    _store(kept)
    _drop(provider, forgotten)
    return forgotten


def _drop(provider: UpstreamProvider, before: KeptKey | None, now: str = "") -> None:
    """Remove a key that she typed and that is used no more; `now`: the reference that is."""
    if now != f"file://{_file(provider)}":
        _file(provider).unlink(missing_ok=True)
    if before is not None and before.reference == f"keyring://{SERVICE}/{provider.id}" != now:
        _out_of_keyring(provider.id)


def _reference(text: str) -> SecretReference:
    reference = parse(text)
    if reference is None or reference.scheme:
        raise BadInput(
            "BAD_REFERENCE", "This is no reference to a secret. Give env://NAME, file://PATH, op://… or keyring://…."
        )
    return reference


def _file(provider: UpstreamProvider) -> Path:
    return user_files.directory() / "keys" / provider.id


def _store(kept: Mapping[str, KeptKey]) -> None:
    text = json.dumps({name: key.model_dump() for name, key in sorted(kept.items())}, indent=2)
    atomic_file.replace(path(), text, mode=0o600)


def _into_keyring(name: str, key: str) -> bool:
    """Whether the system's keyring took a key and gives it back."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return False
    try:
        keyring.set_password(SERVICE, name, key)
        return bool(keyring.get_password(SERVICE, name) == key)
    except (KeyringError, OSError, RuntimeError):
        return False


def _out_of_keyring(name: str) -> None:
    import keyring
    from keyring.errors import KeyringError

    with suppress(KeyringError, OSError, RuntimeError):
        keyring.delete_password(SERVICE, name)


@dataclass(frozen=True, slots=True)
class KeyTrial:
    """What came of a request with a key.

    Args:
        state: whether the provider took the key; `unclear`: it answered something else, `unreachable`: nothing.
        detail: a sentence.
    """

    state: Literal["accepted", "refused", "unclear", "unreachable"]
    detail: str


async def try_key(key: ProviderKey, seconds: float) -> KeyTrial:
    """Ask the provider for its models with a key: the cheapest request that needs one."""
    provider = PROVIDERS[key.provider]
    url, headers = provider.address(key.base, provider.listing), {"anthropic-version": "2023-06-01", **key.headers()}
    where = inert_line(urlsplit(key.base).netloc.rpartition("@")[2])
    try:
        async with (
            httpx2.AsyncClient(timeout=seconds, trust_env=False, follow_redirects=False) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        return KeyTrial("unreachable", f"{provider.name} does not answer at {where} ({type(error).__name__}).")
    if 200 <= status < 300:
        return KeyTrial("accepted", f"{provider.name} at {where} accepts the key.")
    if status in _REFUSALS[key.provider]:
        return KeyTrial("refused", f"{provider.name} at {where} refuses the key: status {status}.")
    return KeyTrial("unclear", f"{provider.name} at {where} answered with status {status}, not with its models.")


_REFUSALS = {"anthropic": (401, 403), "openai": (401, 403), "gemini": (400, 401, 403)}
