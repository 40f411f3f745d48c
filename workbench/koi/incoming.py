"""Reads envelopes from other nodes. One malformed event, RID or bundle costs only itself, not the envelope."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from workbench.errors import BadInput
from workbench.koi.envelope import LONGEST_SIGNATURE, Envelope
from workbench.koi.identity import is_signed
from workbench.koi.payloads import Bundle, KoiEvent, Manifest
from workbench.koi.rids import AnyRid
from workbench.rules.reasons import reason

DEEPEST = 64
"""Levels of lists and objects in an event, a bundle or the arguments of a call."""
LONGEST_REASON = 300
LARGE = 65_536
"""Bytes of an envelope that takes too long to be read on the event loop."""
_SIGNATURE = re.compile(rb',"signature":"[A-Za-z0-9+/=]{0,200}"\}\s*\Z')
"""Nothing may follow it: a second payload there would replace the one that is signed."""
_RIDS: TypeAdapter[Any] = TypeAdapter(AnyRid)
_ITEMS: Mapping[str, TypeAdapter[Any]] = {
    "events": TypeAdapter(KoiEvent),
    "manifests": TypeAdapter(Manifest),
    "bundles": TypeAdapter(Bundle),
    "rids": _RIDS,
    "not_found": _RIDS,
    "deferred": _RIDS,
}
"""The lists in payloads, by the name of the field."""


class Malformed(NamedTuple):
    """A part of a payload that cannot be read."""

    code: str
    reason: str


@dataclass(frozen=True)
class Incoming:
    """An envelope that was received. Its signature is not checked yet.

    Args:
        envelope: without malformed items.
        malformed: the items that were dropped from the payload.
        as_sent: the bytes that are signed, if the sender wrote the signature last, as koi-net does.
    """

    envelope: Envelope
    malformed: tuple[Malformed, ...]
    as_sent: bytes | None

    def is_signed_with(self, public_key: str) -> bool:
        """Whether the signature is by this key.

        koi-net serializes the parsed envelope again and checks the signature of that. The bytes as they were sent
        count too: they cover dropped items, and do not depend on how a version of pydantic writes numbers.
        """
        signature = self.envelope.signature
        if self.as_sent is not None and is_signed(public_key, signature, self.as_sent):
            return True
        return is_signed(public_key, signature, self.envelope.unsigned_text())


def opened(raw: bytes) -> Incoming:
    """Read an envelope.

    Raises:
        BadInput: ``KOI_MALFORMED``: it is no envelope, or malformed elsewhere than in one item of a list.
    """
    try:
        fields = from_json(raw, allow_inf_nan=False)
        payload = dict(fields["payload"])
        malformed: list[Malformed] = []
        for name in payload:
            if name in _ITEMS:
                payload[name] = _keep_readable(name, payload[name], malformed)
        _require_plain({name: value for name, value in payload.items() if name not in _ITEMS})
        envelope = Envelope.model_validate({**fields, "payload": payload})
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput("KOI_MALFORMED", f"This is no envelope of KOI-net: {_reason(error)}.") from None
    signature = _SIGNATURE.search(raw, max(0, len(raw) - 2 * LONGEST_SIGNATURE))
    return Incoming(envelope, tuple(malformed), raw[: signature.start()] + b"}" if signature else None)


async def received(raw: bytes) -> Incoming:
    """Read an envelope as `opened` does; a large one in a thread, because a megabyte takes a tenth of a second.

    Raises: as `opened`.
    """
    return opened(raw) if len(raw) <= LARGE else await asyncio.to_thread(opened, raw)


def _keep_readable(name: str, items: Any, malformed: list[Malformed]) -> list[Any]:
    """The items of a list that can be read; the others are added to `malformed`."""
    if not isinstance(items, list):
        raise ValueError(f"{name} is no list")
    readable = []
    for number, item in enumerate(items):
        try:
            _require_plain(item)
            readable.append(_ITEMS[name].validate_python(item))
        except ValueError as error:
            malformed.append(Malformed("KOI_MALFORMED", f"{name}[{number}]: {_reason(error)}"))
    return readable


def _require_plain(value: Any, depth: int = 0) -> None:
    """Check that a value is not nested too deeply, and that its numbers are finite: others cannot be hashed.

    Raises:
        ValueError: it is not so.
    """
    if isinstance(value, dict | list):
        if depth == DEEPEST:
            raise ValueError(f"it has more than {DEEPEST} levels")
        for part in value.values() if isinstance(value, dict) else value:
            _require_plain(part, depth + 1)
    elif isinstance(value, int | float) and not _is_finite(value):
        raise ValueError("a number is too large")


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        text = f"{where}: {reason(first)}" if where else reason(first)
    elif isinstance(error, KeyError):
        text = f"{error.args[0]} is missing"
    elif isinstance(error, TypeError):
        text = "it is no object whose payload is an object"
    else:
        text = str(error)
    return text[:LONGEST_REASON]
