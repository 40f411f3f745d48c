"""What is wrong with a definition, or missing in it, beyond what the model refuses. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from workbench.errors import BadInput
from workbench.rules.definitions import providers
from workbench.rules.definitions.composition import system_prompt
from workbench.rules.definitions.mcp_servers import HttpServer
from workbench.rules.definitions.model import (
    DEFAULT_PROMPT,
    Definition,
    ExportedTool,
    Include,
    Mode,
    PromptEntry,
    placeholders,
)
from workbench.rules.definitions.secrets.of_servers import places
from workbench.rules.definitions.secrets.written_out import written_out
from workbench.rules.hosts import is_exposed
from workbench.rules.secrets.forms import MASK

LONG_PROMPT = 60_000
"""Characters of a system prompt above which it is called long: some 15,000 tokens."""


class Severity(StrEnum):
    """An error keeps the agent, or a part of it, from working; a warning is probably a mistake; a hint is advice."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class CompletenessFinding:
    """One thing to mend.

    Args:
        place: where, such as ``settings.model`` or ``rules.cite``.
        message: what is wrong, and what to do.
    """

    severity: Severity
    place: str
    message: str


def findings(definition: Definition) -> list[CompletenessFinding]:
    """All findings, errors first."""
    found = (
        *_of_identity(definition),
        *_of_prompt(definition),
        *_of_model(definition),
        *_of_providers(definition),
        *_of_entries(definition),
        *_of_tools(definition),
        *_of_servers(definition),
        *_of_secrets(definition),
    )
    return by_severity(found)


def by_severity(found: Iterable[CompletenessFinding]) -> list[CompletenessFinding]:
    """Errors first, then warnings, then hints."""
    order = list(Severity)
    return sorted(found, key=lambda one: order.index(one.severity))


def _error(place: str, message: str) -> CompletenessFinding:
    return CompletenessFinding(Severity.ERROR, place, message)


def _warning(place: str, message: str) -> CompletenessFinding:
    return CompletenessFinding(Severity.WARNING, place, message)


def _hint(place: str, message: str) -> CompletenessFinding:
    return CompletenessFinding(Severity.HINT, place, message)


def _of_identity(definition: Definition) -> Iterator[CompletenessFinding]:
    if not definition.metadata.description.strip():
        yield _hint("metadata.description", "There is no description. Planners choose agents by it; add one sentence.")


def _of_prompt(definition: Definition) -> Iterator[CompletenessFinding]:
    whole = system_prompt(definition)
    if not whole.strip():
        yield _error("prompt", "The system prompt is empty. Write one, or include a rule always.")
    elif definition.prompt == DEFAULT_PROMPT:
        yield _hint("prompt", "This is the default prompt. Say what the agent is for.")
    if len(whole) > LONG_PROMPT:
        yield _hint(
            "prompt",
            f"The system prompt has {len(whole):,} characters with its rules and references. Include fewer always.",
        )


def _of_model(definition: Definition) -> Iterator[CompletenessFinding]:
    model = definition.settings.model
    if not model:
        if definition.providers:
            yield _warning("settings.model", "No model is chosen. Set it to provider:model.")
        return
    try:
        provider = providers.provider_id(model.partition(":")[0])
    except BadInput as error:
        yield _error("settings.model", error.message)
        return
    if provider not in definition.providers and _needs_keys(provider):
        yield _warning("settings.model", f"Its provider {provider} is not installed here. Install it, or set its keys.")


def _needs_keys(provider: str) -> bool:
    return any(value.required for value in providers.PROVIDERS[provider].config_values)


def _of_providers(definition: Definition) -> Iterator[CompletenessFinding]:
    for name, config in definition.providers.items():
        try:
            providers.check(providers.provider_id(name), config)
        except BadInput as error:
            yield _error(f"providers.{name}", error.message)


def _of_entries(definition: Definition) -> Iterator[CompletenessFinding]:
    nouns: Mapping[str, list[PromptEntry]] = {"rules": definition.rules, "references": definition.references}
    for noun, entries in nouns.items():
        for entry in entries:
            if entry.include is Include.AGENT and not entry.description.strip():
                text = "The agent chooses it by its description, which is empty. Say when to read it."
                yield _warning(f"{noun}.{entry.name}", text)
        for names in _same(entries):
            yield _hint(f"{noun}.{names[-1]}", f"It has the same text as {names[0]}. Delete one of them.")


def _same(entries: list[PromptEntry]) -> Iterator[list[str]]:
    for text, times in Counter(entry.text for entry in entries).items():
        if times > 1:
            yield [entry.name for entry in entries if entry.text == text]


def _of_tools(definition: Definition) -> Iterator[CompletenessFinding]:
    is_offering = definition.metadata.mode is Mode.TOOLS
    if is_offering and not definition.tools:
        yield _error("tools", "An agent in mode tools exports at least one. Add a tool, or change the mode.")
    if definition.tools and not is_offering:
        yield _warning("tools", f"They are exported in mode tools only; the mode is {definition.metadata.mode}.")
    for tool in definition.tools:
        yield from _of_tool(tool)


def _of_tool(tool: ExportedTool) -> Iterator[CompletenessFinding]:
    place = f"tools.{tool.name}"
    if not tool.description.strip():
        yield _warning(place, "There is no description. Models choose tools by it; say what the tool does.")
    declared: Any = tool.parameters.get("properties") or {}
    for name in sorted(set(declared) - placeholders(tool.prompt)):
        yield _hint(place, f"The prompt does not use the parameter {name}. Add {{{name}}} to it, or remove {name}.")


def _of_servers(definition: Definition) -> Iterator[CompletenessFinding]:
    for name, server in definition.mcp_servers.items():
        if isinstance(server, HttpServer) and server.headers and is_exposed(server.url):
            text = "Its headers are sent without encryption. Use https, or send none."
            yield _warning(f"mcpServers.{name}", text)


def _of_secrets(definition: Definition) -> Iterator[CompletenessFinding]:
    values = {f"providers.{name}.{key}": value for name, c in definition.providers.items() for key, value in c.items()}
    for name, server in definition.mcp_servers.items():
        values |= {f"mcpServers.{name}.{place.name}": value for place, value in places(server).values()}
    masks = [place for place, value in values.items() if value == MASK]
    yield from (_error(place, "This is the mask of a secret, not the secret. Set it again.") for place in masks)
    for place in written_out(definition):
        if place not in masks:
            is_text = not place.startswith(("providers.", "mcpServers."))
            way = "a variable that is given to the agent" if is_text else "a reference such as env://NAME"
            yield _warning(place, f"The secret is written out. Replace it by {way}.")
