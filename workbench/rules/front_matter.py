"""Markdown with YAML front matter: a head between two lines `---`, and a body."""

from __future__ import annotations

from typing import Any

from workbench.rules.yaml_text import InvalidYaml, edit, load, with_ends_of, write

_FENCE = "---\n"


def split(text: str) -> tuple[dict[str, Any], str]:
    """The head and the body of a text with any line endings; the head is empty if there is none.

    Raises:
        InvalidYaml: the head is no mapping, or is not closed; its line counts from the first of the text.
    """
    head, body = parts(text)
    try:
        meta = load(head)
    except InvalidYaml as error:
        raise InvalidYaml(str(error), error.line and error.line + 1) from None
    if meta is None:
        return {}, body
    if not isinstance(meta, dict):
        raise InvalidYaml("the front matter is not a mapping", 2)
    return meta, body


def join(head: dict[str, Any], body: str, before: str = "") -> str:
    """A text of a head and a body; comments in the head of the text as it was `before` are kept.

    Raises:
        InvalidYaml: `before` cannot be parsed.
    """
    old, _ = parts(before)
    return with_ends_of(before, f"{_FENCE}{edit(old, head) if old else write(head)}{_FENCE}{body}")


def parts(text: str) -> tuple[str, str]:
    """The head, not parsed, and the body of a text with any line endings, and perhaps a byte order mark before it.

    Raises:
        InvalidYaml: the head is not closed.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith(_FENCE):
        return "", text
    head, found, body = f"\n{text[len(_FENCE) :]}\n".partition(f"\n{_FENCE}")
    if not found:
        raise InvalidYaml("the front matter is not closed by `---`", 1)
    return head[1:] + "\n" if head else "", body[:-1]
