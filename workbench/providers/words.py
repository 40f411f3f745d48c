"""What a provider, or the connection to it, says of a failure, as a sentence. Knows no library of a provider."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from workbench.present.inert import inert_line

LONGEST = 500
"""Characters of what is said that are shown."""
_KEYS = ("message", "msg", "detail", "error", "error_message", "errors", "Error", "Message", "description", "title")
_DEEPEST = 10
_READING = (json.JSONDecodeError, ValueError, TypeError, AttributeError, KeyError, AssertionError)


def words_of(error: BaseException) -> str:
    """What went wrong in the provider's own words, with the status that it answered with, if it gave one."""
    status = getattr(error, "status_code", None)
    return sentence(_answer(error, status) if isinstance(status, int) else _without_answer(error))


def said(body: object) -> str | None:
    """The words in the body of an answer that is an error; None if there are none."""
    match body:
        case str():
            return None if not body.strip() or body.lstrip().startswith("<") else body
        case {"msg": str(words), "loc": [*place]} if words:
            return f"{'.'.join(map(str, place))}: {words}"
        case Mapping():
            return next(filter(None, (said(body[key]) for key in _KEYS if key in body)), None)
        case [*items]:
            return "; ".join(filter(None, map(said, items))) or None
    return None


def sentence(text: str) -> str:
    """A text of others as one line, cut, that ends as a sentence does."""
    line = inert_line(" ".join(text.split()))[:LONGEST]
    return line if not line or line.endswith((".", "!", "?")) else f"{line}."


def address_of(error: BaseException) -> str:
    """The address that a request was for, without what may be secret in it; empty if it is not known."""
    for one in _chain(error):
        if (request := _request_of(one)) is not None:
            url = urlsplit(str(request.url))
            place = url.netloc.rpartition("@")[2]
            return f"{url.scheme}://{place}{url.path}"
    return ""


def unreachable(error: BaseException) -> str:
    """Why a connection failed, or ended."""
    address = address_of(error)
    for one in _chain(error):
        if isinstance(one, socket.gaierror):
            return f"The name in {address or 'its address'} is not known"
        if isinstance(one, ssl.SSLError):
            return f"A secure connection to {address} fails: {one.reason or one}"
        if "Timeout" in type(one).__name__:
            return f"{address or 'It'} did not answer in time"
        if isinstance(one, ConnectionRefusedError) or type(one).__name__ == "ConnectError":
            return f"No server answers at {address or 'its address'}"
    return "The connection ended"


def _answer(error: BaseException, status: int) -> str:
    """What an answer with a status of failure says."""
    body = _body_of(error)
    if words := said(body):
        return f"It answers {status}: {words}"
    if isinstance(body, str) and body.lstrip().startswith("<"):
        return f"It answers {status} with a web page"
    if body and not isinstance(body, str):
        return f"It answers {status}: {json.dumps(body, default=str)}"
    phrase = next((known.phrase for known in HTTPStatus if known == status), "")
    return f"It answers {status}: {phrase}" if phrase else f"It answers {status}, without a word"


def _without_answer(error: BaseException) -> str:
    if words := said(getattr(error, "body", None)):
        return words
    cause = error.__cause__
    if isinstance(cause, _READING) or "Response" in type(cause).__name__:
        return "A part of its answer is not as its protocol has it"
    if isinstance(cause, Exception):
        return unreachable(error)
    return str(error)


def _body_of(error: BaseException) -> Any:
    """The body of an answer; as it came, if the library has found nothing in it."""
    body = getattr(error, "body", None)
    response = next((found for one in _chain(error) if (found := getattr(one, "response", None)) is not None), None)
    if said(body) or response is None or not (text := _text(response)):
        return body
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(response: Any) -> str:
    try:
        return str(response.text)
    except (AttributeError, RuntimeError):  # it has none, or it is not read
        return ""


def _request_of(error: BaseException) -> Any:
    try:
        return getattr(error, "request", None)
    except RuntimeError:  # of an error that has none
        return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what caused it, and so on."""
    for _ in range(_DEEPEST):  # a cause may be its own
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
