"""Recognises secrets by their form: keys of services, private keys, credentials in URLs and headers, and values after
names such as `API_KEY`.

The prefixes are those that the services document for their keys; scanners such as gitleaks use them, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MASK = "••••••"
"""What is shown in place of a secret."""
KEY_BEGINS = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
"""The first line of a private key (PEM, OpenPGP), as a pattern."""
KEY_ENDS = "-----END "
_IN_LINE = r"(?:(?!-----)[^\r\n])"
KEY_LINE = (
    rf"(?:{_IN_LINE}*[A-Za-z0-9+/]{{40}}{_IN_LINE}*"
    rf"|[ \t|>+\"'-]{{0,40}}(?:[A-Za-z0-9+/=_]*|[A-Z][A-Za-z-]*:[ ]{_IN_LINE}*)[ \t\\+,\"']*)(?=[\r\n]|\Z)"
)
"""A line within a private key, as a pattern: base64, or a header of its armour, also indented, quoted or in a diff."""
KEY_LINES = 400
"""The most lines of a private key; of RSA, 16,384 bits have 200."""
KEY_BODY = (
    rf"(?:{_IN_LINE}+(?={KEY_ENDS})|(?:(?:\r?\n)?(?!{KEY_ENDS}){KEY_LINE}){{1,{KEY_LINES}}}(?:[\r\n]+(?={KEY_ENDS}))?)"
)
"""What follows the first line of a private key, as a pattern: up to its end, or to what is no part of one."""
OPAQUE = 16
"""Characters from which on a value that is nothing to read counts as a secret."""
_SHORTEST = 6
"""Characters of a value after a name that may be something else."""

_NAMES = re.compile(
    r"(?:^|[_.\s-])(?:[a-z]*(?:key|token|secret|password|passwd|passphrase|credential)s?|authorization|(?:set-)?cookie"
    r"|auth|creds?|dsn|jwt|pwd|webhook)(?:$|[_.\s-])|[_.-](?:pass|pat|pw)$",
    re.IGNORECASE,
)
"""Names of what is secret: a word of the name, or its end as in `apikey`."""
_OTHER_NAMES = re.compile(
    r"(?:^|[_.\s-])(?:(?:max|min|num|n|total|input|output|count|page|continuation|pad|eos|bos|mask)[_-]?tokens?"
    r"|tokens?[_-](?:count|limit|budget|type|url)"
    r"|(?:public|primary|foreign|sort|partition|cache|object|idempotency|sentinel|turn|mon|hot|don)[_-]?keys?"
    r"|keys?[_-](?:id|name|path|file|dir|size)"
    r"|(?:pass|token|key|secret)s?[_-](?:env|var|variable|file|path|name|id))(?:$|[_.\s-])|author(?!i[sz])",
    re.IGNORECASE,
)
"""Names that contain such a word and are none: `MAX_TOKENS`, `PUBLIC_KEY`, `monkey`."""
_CERTAIN_NAMES = re.compile(
    r"(?:^|[_.\s-])(?:[a-z]*(?:password|passwd|passphrase|secret|credential)s?|authorization|(?:set-)?cookie|dsn|jwt|pwd"
    r"|(?:api|access|private|secret|signing|encryption|license)[_.\s-]?keys?|apikey"
    r"|(?:access|refresh|auth|api|bearer|session|bot|id)[_.\s-]?tokens?)(?:$|[_.\s-])|[_.-](?:pass|pat|pw)$",
    re.IGNORECASE,
)
"""Names of what is nothing but a secret; `key`, `token` and `auth` may be others."""
_DIRECTORIES = ("PWD", "OLDPWD")
"""A shell's variables for where it is and was."""
_SORTS = re.compile(
    r"|null|none|true|false|str(?:ing)?|text|bool(?:ean)?|int(?:eger)?|number|object|array|type|password|secret|token"
    r"|required|optional|missing|invalid|wrong|expired|hidden|masked|redacted|empty|(?:un)?set|unknown|changed|disabled"
    r"|enabled|yes|no|on|off|ok",
    re.IGNORECASE,
)
"""What is said of a password, in place of one."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_BEGINS = r"(?:(?<![A-Za-z0-9\\])|(?<=\\)(?![nrt])|(?<=\\[nrt]))"
"""The beginning of a word, also after a line break as JSON writes it."""
_WHOLE = re.compile(
    rf"{_BEGINS}(?:"
    r"[spr]k[-_](?:[a-z0-9]+[-_]){0,3}[A-Za-z0-9_-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|A(?:KIA|SIA|Iza)[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{20,}"
    r"|pypi-[A-Za-z0-9_-]{20,}|dckr_pat_[A-Za-z0-9_-]{16,}|hvs\.[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]{20,}"
    r"|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}|lin_api_[A-Za-z0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{20,}|eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{4,}){1,4}"
    r"|\d{8,10}:AA[A-Za-z0-9_-]{30,}"
    r")|wb[aho]_[A-Za-z0-9_-]{16,}|(?<=://hooks\.slack\.com/services/)[A-Za-z0-9/]{16,}|(?<=/api/webhooks/)\d+/[A-Za-z0-9_-]{16,}"
)
"""Values that are secret wherever they stand."""
_VALUE = r"[^\s\"'`,;&<>()\[\]{}|\\]"
_NAME = rf"{_BEGINS}(?P<name>[A-Za-z][A-Za-z0-9_.-]{{0,60}})"
_IN_URLS = (
    re.compile(r"(?P<before>://[^\s/:@\"'<>]*:)(?P<value>[^\s/@\"'<>]+)(?=@)"),
    re.compile(rf"(?P<before>://)(?P<value>(?:(?!/){_VALUE}){{16,}})(?=@)"),
)
_CALL = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[(\[]"
"""What computes a value, in the source of a program."""
_QUOTE = r"(?:\\*[\"'])?"
"""A quotation mark, or none; with backslashes within other quoted texts."""
_NAMED = re.compile(rf"(?P<before>{_NAME}{_QUOTE}\s*[:=](?![:=])\s*{_QUOTE})(?!{_CALL})(?P<value>{_VALUE}{{6,}})")
_SETTING = re.compile(
    r"^[ \t]*(?:export[ \t]+|-[ \t]+)?[\"']?(?P<name>[A-Za-z_][\w.-]{0,60})[\"']?[ \t]*[:=][ \t]*"
    r"(?:\"(?P<double>[^\"\r\n]+)\"|'(?P<single>[^'\r\n]+)'|(?P<plain>[^\s,;#\"'][^\r\n]*?))[ \t,;]*(?:[ \t]#.*)?$",
    re.MULTILINE,
)
"""A line of a file such as `.env`, or of TOML, YAML or JSON."""
_IN_KEYS = re.compile(rf"(?P<before>{KEY_BEGINS})(?P<value>{KEY_BODY})")
_AFTER_NAMES = (
    re.compile(rf"(?P<before>{_BEGINS}(?:Bearer|Basic|Token)\s+)(?P<value>{_VALUE}{{8,}})", re.IGNORECASE),
    _NAMED,
    re.compile(rf"(?P<before>(?<!\S)--?{_NAME}\s+{_QUOTE})(?P<value>{_VALUE}{{6,}})"),
)
"""Values that are secret where they stand, if they are values at all: see `_NO_VALUE`."""
_HINTS = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xox", "xapp-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat"),
    *(
        "akia",
        "asia",
        "aiza",
        "ya29",
        "hf_",
        "npm_",
        "pypi-",
        "hvs.",
        "dop_",
        "shp",
        "lin_",
        "sg.",
        "wba_",
        "wbh_",
        "wbo_",
        "wbm_",
    ),
    *("_pat_", "age-secret", "eyj", ":aa", "hook"),
)
"""Every text with a value that is secret wherever it stands contains one of these, in lower case."""
_NAME_HINTS = (
    *("bearer", "basic", "auth", "cookie", "key", "token", "secret", "pass", "cred", "dsn", "jwt", "pw", "pat", "hook"),
)
"""Every text with a name after which a value is secret contains one of these. Most lines need no pattern."""
_COLOUR = re.compile(r"(?:\x1b|\\+u001[bB])\[[0-?]*[ -/]*[@-~]")
"""What colours a text in a terminal, and moves its cursor (ECMA-48, control sequences), also as JSON writes it."""
_STANDS_FOR = re.compile(
    r"[$<{•]|\*+$|x{3,}$|(?:env|file|op|keyring)://|(?:Bearer|Basic|Token) (?:env|file|op|keyring)://"
)
"""What stands in place of a secret: a variable, a mask, a reference."""
_BETWEEN_WORDS = re.compile(r"[\s\"',;()\[\]{}<>]+")
_NO_VALUE = re.compile(
    r"[$<{•*%/~^]|HTTP/\d|Secret(?:Str|Bytes)$|\.{1,2}/|(?:env|file|op|keyring)://|[\w-]*\.\.\.|[A-Z]+(?:[_-][A-Z]+)*$"
    r"|[A-Z]?[a-z]+(?:[_ -][a-z]+)*[.:!?]?$"
    r"|(?:null|none|true|false|x{3,}|\d+(?:[.:,]\d+)*[a-z%]{0,3})$",
)
_READABLE = re.compile(
    r"[A-Za-z]+(?:[-_.:,=+ ]+[A-Za-z]+)*[.:!?]?|[\d\s.,:/TZ+-]+|(?:\.{0,2}|~|[A-Za-z]:)[/\\].*"
    r"|[\w.-]+(?:/[\w.-]+)*/?\.\w{1,10}|[a-z][a-z\d+.-]*://[^\s@]*|[a-z][\w.-]*(?:/[a-z\d][a-z\d._-]*)+|.*\s.*",
    re.DOTALL,
)
"""Words, numbers and dates, paths, URLs without credentials, sentences."""


def says_secret(name: str) -> bool:
    """Whether a variable, header, flag, query key or argument probably holds a secret, by its name."""
    parts = _CAMEL.sub("_", name)
    return _NAMES.search(parts) is not None and _OTHER_NAMES.search(parts) is None


def has_form(value: str) -> bool:
    """Whether a value has, or contains, one of the well-known forms of secrets."""
    return masked_by_form(value) != value


def is_opaque(value: str) -> bool:
    """Whether a value is long and nothing to read: no word, number, path, sentence, or URL without credentials."""
    return len(value) >= OPAQUE and _READABLE.fullmatch(value) is None


def secrets_in(value: str, name: str = "") -> Iterator[str]:
    """The secrets in a variable, header or argument: the whole value if its name or form says so, and its password."""
    if says_secret(name) or is_opaque(value) or has_form(value):
        yield value
        yield from (found["value"] for pattern in _IN_URLS for found in pattern.finditer(value))


def is_secret_under(name: str, value: str) -> bool:
    """Whether a value in data is a secret by the name of its key, as in ``{"password": "hunter2"}``.

    Words, numbers and what can be read stay under `key` and `token`, as in ``{"token": "the", "key": "runs/7"}``.
    """
    if not says_secret(name) or _STANDS_FOR.match(value) or (name in _DIRECTORIES and value.startswith("/")):
        return False
    if _CERTAIN_NAMES.search(_CAMEL.sub("_", name)):
        return _SORTS.fullmatch(value.strip()) is None
    if name.lower() in ("key", "keys", "tokens"):
        return is_opaque(value)
    return len(value) >= _SHORTEST and _NO_VALUE.match(value) is None and _READABLE.fullmatch(value) is None


def after_flags(words: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """The words of a command, or items of a list, each with the flag before it, without hyphens; empty if none is."""
    flag = ""
    for word in words:
        yield flag, word
        flag = word.lstrip("-") if isinstance(word, str) and word.startswith("-") else ""


def secrets_in_file(text: str) -> set[str]:
    """The secrets in a file such as a login: opaque words, and values after names such as `accessToken`."""
    words = {word for word in _BETWEEN_WORDS.split(text) if is_opaque(word)}
    return words.union(*(secrets_in(found["value"], found["name"]) for found in _NAMED.finditer(text)))


def secrets_in_settings(text: str, *, opaque: bool) -> set[str]:
    """The secrets in a file of settings: what stands after names such as `API_KEY`, or has a well-known form.

    Args:
        opaque: whether what is long and nothing to read is one, too, whatever its name.
    """
    found = set[str]()
    for line in _SETTING.finditer(text):
        name, value = line["name"], line["double"] or line["single"] or line["plain"] or ""
        if is_secret_under(name, value) or has_form(value) or (opaque and is_opaque(value)):
            found |= {value, *secrets_in(value, name)}
    return found


def masked_by_form(text: str) -> str:
    """A text in which what is secret by its form or by the name before it is replaced by `MASK`.

    If something is, the colours of a terminal are left out.
    """
    return masked_uncoloured(text, _masked_by_form)


def masked_uncoloured(text: str, mask: Callable[[str], str]) -> str:
    """What a mask makes of a text as it reads in a terminal: colours hide no secret; they stay if it masks nothing."""
    if "\x1b" not in text and "\\u001" not in text:
        return mask(text)
    coloured = mask(text)  # a secret may contain what looks like a colour
    plain = _COLOUR.sub("", coloured)
    masked = mask(plain)
    return coloured if masked == plain else masked


def _masked_by_form(text: str) -> str:
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        text = _WHOLE.sub(MASK, text)
    if KEY_ENDS[:5] in lowered:
        text = _masked_after(_IN_KEYS, text)
    if "://" in lowered:
        for pattern in _IN_URLS:
            text = _masked_after(pattern, text)
    if any(hint in lowered for hint in _NAME_HINTS):
        for pattern in _AFTER_NAMES:
            text = _masked_after(pattern, text)
    return text


def form_spans(text: str) -> list[tuple[int, int]]:
    """Where in a text something is secret by its form or by the name before it, or masked."""
    between = masked_by_form(text).split(MASK)
    if len(between) == 1:
        return []
    found = re.fullmatch("(.+?)".join(map(re.escape, between)), text, re.DOTALL)
    return [found.span(number) for number in range(1, len(found.groups()) + 1)] if found else [(0, len(text))]


def _masked_after(pattern: re.Pattern[str], text: str) -> str:
    """A text without the values that a pattern finds; in what is no secret itself there may be one: `error: key=…`."""
    parts, done, start = list[str](), 0, 0
    while found := pattern.search(text, start):
        name = found.groupdict().get("name")
        value = found["value"]
        if not value.strip() or (name is not None and not says_secret(name)) or _NO_VALUE.match(value):
            start = found.end("before")
        else:
            parts += (text[done : found.start("value")], MASK)
            done = start = found.end()
    return "".join((*parts, text[done:])) if parts else text
