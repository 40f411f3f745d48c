"""Requests to other nodes: signed envelopes over HTTP, by one client that keeps its connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import httpx2
from cachetools import LRUCache
from pydantic import ValidationError
from rid_lib.types import KoiNetNode

from workbench.errors import BadInput, Hint, Refused, Unavailable
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity, belongs
from workbench.koi.incoming import Incoming, received
from workbench.koi.payloads import Bundle, BundlesPayload, ErrorResponse, FetchBundles, Payload
from workbench.koi.rids import parse_node
from workbench.present.inert import inert_line

BROADCAST, POLL = "/events/broadcast", "/events/poll"
RIDS, MANIFESTS, BUNDLES = "/rids/fetch", "/manifests/fetch", "/bundles/fetch"
LARGEST_PORT = 65_535
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
"""Answers are not compressed: a small one could expand to a very large one."""
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=3.0)
"""Connections are closed before the peer closes them, which koi-net does after 5 s."""
FOLLOWED = "application/x-ndjson"
"""The media type of an answer with progress reports, which the sender accepts to get them: signed envelopes, one a
line, the last one the answer. Workbench's own addition: a node that does not know it, or has nothing to report, sends
the answer alone."""
LARGEST_REPORT = 16_384
"""Bytes of an envelope before the answer."""
REPORT_SECONDS = 0.1
"""A report that comes sooner after another is dropped, because each costs the check of a signature."""
LONGEST_REASON = 500
"""Characters of what another node says of its refusal."""
PEERS = 10_000
"""The most peers of which an answer is remembered."""


HandleReport = Callable[[bytes], Awaitable[None]]
Report = Callable[[Payload], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class KoiPeer:
    """Another node. `base_url` ends with ``/koi-net``."""

    rid: KoiNetNode
    base_url: str
    public_key: str


class PeerClient:
    """Sends requests as one node, over connections that it keeps. Close it when done.

    Args:
        seconds: how long a peer may take for its whole answer.
        largest: bytes of the largest answer.
    """

    def __init__(self, identity: NodeIdentity, *, seconds: float, largest: int) -> None:
        self._identity = identity
        self._seconds = seconds
        self._largest = largest
        self._answered: LRUCache[KoiPeer, bool] = LRUCache(PEERS)
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=seconds),
            limits=LIMITS,
            headers=HEADERS,
            follow_redirects=False,
            trust_env=False,
        )

    async def ask(self, peer: KoiPeer, path: str, payload: Payload, *, seconds: float | None = None) -> Payload | None:
        """Send a payload; the answer's payload without malformed items, or None if the answer has none.

        Raises: as `exchange`.
        """
        answer = await self.exchange(peer, path, payload, seconds=seconds)
        return None if answer is None else answer.envelope.payload

    async def follow(
        self, peer: KoiPeer, path: str, payload: Payload, *, seconds: float, report: Report
    ) -> Payload | None:
        """As `ask`; the reports that the peer sends before its answer are passed on, wrong ones dropped.

        Raises: as `exchange`.
        """
        clock = asyncio.get_running_loop().time
        last = clock() - REPORT_SECONDS

        async def handle_report(raw: bytes) -> None:
            nonlocal last
            if clock() - last < REPORT_SECONDS:
                return
            last = clock()
            with suppress(Unavailable):
                await report((await self._check(peer, raw)).envelope.payload)

        raw = await self._answer(peer, path, payload, seconds, handle_report)
        return (await self._check(peer, raw)).envelope.payload

    async def exchange(
        self, peer: KoiPeer, path: str, payload: Payload, *, seconds: float | None = None
    ) -> Incoming | None:
        """Send a payload; the answer, whose signature is checked, or None if it is ``null``.

        Raises:
            Refused: ``KOI_REFUSED``; `details.error` is the protocol's: ``unknown_node``, …
            Unavailable: ``KOI_UNREACHABLE``, ``KOI_BAD_ANSWER``.
        """
        raw = await self._answer(peer, path, payload, seconds)
        return None if raw.strip() in (b"", b"null") else await self._check(peer, raw)

    async def identify(self, base_url: str) -> KoiNetNode:
        """The RID of the node at a URL, as it states it. Other implementations than Workbench do not state it.

        Raises:
            Unavailable: ``KOI_UNREACHABLE``, ``KOI_RID_UNKNOWN``.
        """
        status, raw = await self._request("GET", base_url, None, self._seconds)
        try:
            if status != httpx2.codes.OK:
                raise ValueError(f"its status is {status}")
            return parse_node(json.loads(raw)["rid"])
        except (ValueError, KeyError, TypeError):
            raise Unavailable(
                "KOI_RID_UNKNOWN",
                f"The node at {base_url} does not say what its RID is.",
                Hint(
                    "join_network",
                    "Give it: {}(first_contact_rid=…), or the setting koi_first_contact_rid.",
                    "Give it: `workbench koi join URL --rid RID`, or the setting koi_first_contact_rid.",
                ),
            ) from None

    async def meet(self, rid: KoiNetNode, base_url: str) -> Bundle:
        """The bundle of a node whose key is not known yet, asked from the node itself.

        Its answer must be signed with the key in the bundle, which must be the key of the RID.

        Raises: as `exchange`.
        """
        peer = KoiPeer(rid, base_url, "")
        raw = await self._answer(peer, BUNDLES, FetchBundles(rids=[rid]), None)
        incoming = await self._read_from(peer, raw)
        payload = incoming.envelope.payload
        if not isinstance(payload, BundlesPayload) or not (
            bundles := [bundle for bundle in payload.bundles if bundle.rid == rid]
        ):
            raise _bad_answer(rid, "it has not the node's own bundle")
        key = bundles[0].contents.get("public_key")
        if not isinstance(key, str) or not belongs(key, rid) or not incoming.is_signed_with(key):
            raise _bad_answer(rid, "its signature does not fit")
        return bundles[0]

    def has_answered(self, peer: KoiPeer) -> bool:
        """Whether a signed answer came from this address, which proves that it is the node's own."""
        return peer in self._answered

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _answer(
        self,
        peer: KoiPeer,
        path: str,
        payload: Payload,
        seconds: float | None,
        handle_report: HandleReport | None = None,
    ) -> bytes:
        body = signed(self._identity, payload, peer.rid)
        status, raw = await self._request("POST", peer.base_url + path, body, seconds or self._seconds, handle_report)
        if status == httpx2.codes.BAD_REQUEST:
            raise _refusal(peer, raw)
        if status != httpx2.codes.OK:
            raise _bad_answer(peer.rid, f"its status is {status}{_reason(raw)}", status=status)
        return raw

    async def _request(
        self, method: str, url: str, body: bytes | None, seconds: float, handle_report: HandleReport | None = None
    ) -> tuple[int, bytes]:
        headers = {"Accept": FOLLOWED} if handle_report else None
        try:
            _require_port(url)
            exchange = self._http.stream(method, url, content=body, headers=headers)
            async with asyncio.timeout(seconds), exchange as response:
                is_followed = handle_report is not None and response.headers.get("Content-Type") == FOLLOWED
                return response.status_code, await self._read(url, response, handle_report if is_followed else None)
        except TimeoutError:
            raise _unreachable(url, f"no answer within {seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise _unreachable(url, str(error) or type(error).__name__) from None

    async def _read(self, url: str, response: httpx2.Response, handle_report: HandleReport | None) -> bytes:
        """The body of a response; with `handle_report`, its last line."""
        raw, size = bytearray(), 0
        async for received_bytes in response.aiter_raw():
            size += len(received_bytes)
            if size > self._largest:
                raise _bad_answer(url, f"it is larger than {self._largest:,} bytes")
            raw += received_bytes
            while handle_report is not None and (end := raw.find(b"\n")) >= 0:
                line = bytes(raw[:end])
                del raw[: end + 1]
                if len(line) <= LARGEST_REPORT:
                    await handle_report(line)
        return bytes(raw)

    async def _check(self, peer: KoiPeer, raw: bytes) -> Incoming:
        """An answer, if it is an envelope from the peer and for this node, with its signature."""
        incoming = await self._read_from(peer, raw)
        if not incoming.is_signed_with(peer.public_key):
            raise _bad_answer(peer.rid, "its signature does not fit")
        self._answered[peer] = True
        return incoming

    async def _read_from(self, peer: KoiPeer, raw: bytes) -> Incoming:
        """An answer, if it is an envelope from the peer and for this node."""
        try:
            incoming = await received(raw)
        except BadInput as error:
            raise _bad_answer(peer.rid, error.message) from None
        envelope = incoming.envelope
        if envelope.source_node != peer.rid or envelope.target_node != self._identity.rid:
            raise _bad_answer(peer.rid, "it is from another node, or for another one")
        return incoming


def _require_port(url: str) -> None:
    """Check that an address has a port that can exist; the HTTP client does not.

    Raises:
        InvalidURL: it has not.
    """
    if (httpx2.URL(url).port or 0) > LARGEST_PORT:
        raise httpx2.InvalidURL("there is no such port")


def _refusal(peer: KoiPeer, raw: bytes) -> Refused | Unavailable:
    try:
        answer = ErrorResponse.model_validate_json(raw)
    except ValidationError:
        return _bad_answer(peer.rid, f"its status is 400{_reason(raw)}", status=400)
    why = f": {_short(answer.code or '', answer.message)}" if answer.message else "."
    return Refused("KOI_REFUSED", f"{peer.rid} refused the request: {answer.error}{why}", error=answer.error)


def _reason(raw: bytes) -> str:
    """What Workbench says of a request that it refuses, after what was said of it."""
    try:
        error = json.loads(raw)["error"]
        return f": {_short(str(error['code']), str(error['message']))}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return ", and it gives no reason"


def _short(code: str, message: str) -> str:
    """A reason of another node on one line, which harms no terminal."""
    return inert_line(f"{code} {message}".strip())[:LONGEST_REASON]


def _bad_answer(sender: object, reason: str, **details: int) -> Unavailable:
    return Unavailable("KOI_BAD_ANSWER", f"The answer of {sender} is wrong: {reason}.", **details)


def _unreachable(url: str, reason: str) -> Unavailable:
    return Unavailable("KOI_UNREACHABLE", f"{url} cannot be reached: {reason}.")
