"""The system prompt that a definition amounts to: its prompt, then its rules, then its references."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable

from workbench.rules.definitions.former_settings import hashed
from workbench.rules.definitions.model import Definition, Include, PromptEntry
from workbench.rules.definitions.secrets.written_out import masked

HASH_LENGTH = 16
_NOT_CONTENT = {"metadata": {"created"}}


def system_prompt(definition: Definition, chosen: Collection[str] = (), *, offers: bool = False) -> str:
    """The system prompt, in Markdown.

    Args:
        chosen: the names of rules and references to include that are included on request only.
        offers: name those that the agent reads with a tool, which it then must have.
    """
    sections = (
        definition.prompt,
        _section("Rules", _included(definition.rules, chosen)),
        _section("References", _included(definition.references, chosen)),
        offer(definition, chosen) if offers else "",
    )
    return "\n\n".join(section for section in sections if section)


def offer(definition: Definition, chosen: Collection[str] = ()) -> str:
    """A section that names the rules and references which the agent reads with a tool when it needs them; empty
    without any.

    Args:
        chosen: see `system_prompt`; those are not offered again.
    """
    parts = (("rule", definition.rules), ("reference", definition.references))
    offered = [
        f"- {noun} `{entry.name}`{f': {entry.description}' if entry.description else ''}"
        for noun, entries in parts
        for entry in entries
        if entry.include is Include.AGENT and entry.name not in chosen
    ]
    if not offered:
        return ""
    return "\n".join(
        ("# More on request", "", "Read these with get_rule and get_reference when they apply:", "", *offered)
    )


def content_hash(definition: Definition) -> str:
    """Identifies what a definition says, whatever its files look like, without its secrets: hexadecimal digits."""
    shown = masked(definition)
    content = shown.model_dump(mode="json", by_alias=True, exclude=_NOT_CONTENT)
    content["settings"] = hashed(shown.settings.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    if not content["workplace"]:  # hashes of definitions that state none stay what they were
        del content["workplace"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text_hash(text)


def text_hash(text: str) -> str:
    """Identifies a text, such as a system prompt as it is sent: hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def _included(entries: Iterable[PromptEntry], chosen: Collection[str]) -> list[PromptEntry]:
    return [entry for entry in entries if entry.include is Include.ALWAYS or entry.name in chosen]


def _section(title: str, entries: list[PromptEntry]) -> str:
    parts = [f"## {entry.name}\n\n{entry.text}" for entry in entries]
    return "\n\n".join([f"# {title}", *parts]) if parts else ""
