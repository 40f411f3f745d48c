"""The secrets that a definition has written out: masked wherever it is shown, and named. Nothing is resolved here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

from workbench.errors import BadInput
from workbench.rules.definitions.model import Definition, ExportedTool, ModelSettings, PromptEntry
from workbench.rules.definitions.providers import PROVIDERS
from workbench.rules.definitions.secrets.of_servers import Server, SpanPlace, rewritten
from workbench.rules.definitions.secrets.references import parse, variable
from workbench.rules.secrets.executed import warning_of
from workbench.rules.secrets.forms import MASK, form_spans, has_form, is_secret_under, says_secret

E = TypeVar("E", PromptEntry, ExportedTool)
Replacement = Callable[[str, str], str]
"""What replaces a secret, by its place and the secret."""


def masked(definition: Definition) -> Definition:
    """The definition with every secret that is written out replaced by `MASK`; references stay."""
    return replace_secrets(definition, lambda place, value: MASK)


def with_masked_configuration(definition: Definition) -> Definition:
    """The definition with the secrets of its providers and servers masked; what it says to models stays as it is."""
    hidden = masked(definition)
    parts = ("providers", "mcp_servers", "workplace")
    return definition.model_copy(update={part: getattr(hidden, part) for part in parts})


def masked_server(server: Server) -> Server:
    """The server with every secret that is written out replaced by `MASK`; references stay."""
    return rewritten(server, lambda place, value: value if parse(value) else MASK)


def replace_secrets(definition: Definition, replacement: Replacement, *, whole: bool = False) -> Definition:
    """The definition with every secret that is written out replaced.

    Args:
        replacement: what replaces it, by its place and value; a place is such as ``providers.openai.OPENAI_API_KEY``,
            ``mcpServers.hub.HUB_TOKEN``, ``mcpServers.hub.args.token`` or ``mcpServers.hub.url.key``; in texts and
            settings ``prompt``, ``rules.style``, ``tools.ask`` or ``settings.apiKey``.
        whole: replace arguments as a whole in which no reference can stand in place of their secrets.
    """
    providers = {
        name: {
            key: replacement(f"providers.{name}.{key}", value) if is_written_out(value, is_secret(name, key)) else value
            for key, value in config.items()
        }
        for name, config in definition.providers.items()
    }

    def of(name: str, server: Server) -> Server:
        def replaced(place: SpanPlace, value: str) -> str:
            return value if parse(value) else replacement(f"mcpServers.{name}.{place.name}", value)

        return rewritten(server, replaced, whole=whole)

    servers = {name: of(name, server) for name, server in definition.mcp_servers.items()}

    def text(place: str, value: str) -> str:
        return _rewritten_text(value, lambda secret: replacement(place, secret))

    return with_texts(definition, text).model_copy(
        update={
            "providers": providers,
            "mcp_servers": servers,
            "settings": _of_settings(definition.settings, replacement),
            "workplace": _of_data("workplace", "", definition.workplace, replacement),
        }
    )


def with_texts(definition: Definition, rewrite: Callable[[str, str], str]) -> Definition:
    """The definition with other texts.

    Args:
        rewrite: the new text, by its place, such as ``prompt`` or ``rules.style``, and the present one.
    """

    def entries(section: str, found: Sequence[E], field: str) -> list[E]:
        return [
            one.model_copy(
                update={
                    field: rewrite(f"{section}.{one.name}", getattr(one, field)),
                    "description": rewrite(f"{section}.{one.name}.description", one.description),
                }
            )
            for one in found
        ]

    metadata = definition.metadata
    return definition.model_copy(
        update={
            "metadata": metadata.model_copy(
                update={"description": rewrite("metadata.description", metadata.description)}
            ),
            "prompt": rewrite("prompt", definition.prompt),
            "rules": entries("rules", definition.rules, "text"),
            "references": entries("references", definition.references, "text"),
            "tools": entries("tools", definition.tools, "prompt"),
        }
    )


def _of_settings(settings: ModelSettings, replacement: Replacement) -> ModelSettings:
    """Settings with the secrets replaced that stand under names that the format does not define."""
    extra = settings.model_extra or {}
    update = {key: _of_data(f"settings.{key}", key, value, replacement) for key, value in extra.items()}
    return settings.model_copy(update=update) if update else settings


def _of_data(place: str, name: str, value: Any, replacement: Replacement) -> Any:
    """Data with the secrets replaced; `name` is the key under which it stands."""
    match value:
        case str() if parse(value) is None and is_secret_under(name, value):
            return replacement(place, value)
        case str() if parse(value) is None:
            return _rewritten_text(value, lambda secret: replacement(place, secret))
        case dict():
            return {key: _of_data(f"{place}.{key}", key, one, replacement) for key, one in value.items()}
        case list():
            return [_of_data(place, name, one, replacement) for one in value]
    return value


def _rewritten_text(text: str, replacement: Callable[[str], str]) -> str:
    pieces, end = list[str](), 0
    for start, stop in form_spans(text):
        if text[start:stop] != MASK:
            pieces += [text[end:start], replacement(text[start:stop])]
            end = stop
    return "".join((*pieces, text[end:]))


def unmasked_texts(update: Definition, stored: Definition) -> Definition:
    """An update by a client that was shown masked texts: in them, `MASK` stands for the secret that is stored there.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``: fewer or more masks than secrets; `details.key`.
    """
    known: dict[str, str] = {}
    with_texts(stored, lambda place, text: known.setdefault(place, text) and text)

    def unmasked(place: str, text: str) -> str:
        return _unmasked(place, text, known.get(place, ""))

    made = with_texts(update, unmasked)
    extra, old = update.settings.model_extra or {}, stored.settings.model_extra or {}
    kept = {key: old[key] for key, value in extra.items() if value == MASK and isinstance(old.get(key), str)}
    return made.model_copy(update={"settings": update.settings.model_copy(update=kept)}) if kept else made


def _unmasked(place: str, text: str, stored: str) -> str:
    if MASK not in text or text == stored:
        return text
    secrets = [stored[start:end] for start, end in form_spans(stored)]
    pieces = text.split(MASK)
    if not secrets:
        return text
    if len(pieces) != len(secrets) + 1:
        raise BadInput(
            "INVALID_CONFIGURATION",
            f"{place} has masks ({MASK}) for some of its secrets only. Send one for each, in their order, or none.",
            key=place,
        )
    return "".join(part for pair in zip(pieces, (*secrets, ""), strict=True) for part in pair)


def written_out(definition: Definition) -> list[str]:
    """The places of secrets that are not references, such as ``providers.openai.OPENAI_API_KEY``."""
    return [place for place, _ in places(definition)]


def places(definition: Definition) -> list[tuple[str, str]]:
    """The secrets that are not references, by their places."""
    found: list[tuple[str, str]] = []

    def note(place: str, value: str) -> str:
        found.append((place, value))
        return MASK

    replace_secrets(definition, note)
    return found


def values(definition: Definition) -> set[str]:
    """The secrets that are written out, themselves."""
    found = {value for _, value in places(definition)}
    return {*found, *map(unquote, found)} - {MASK}


def is_secret(provider: str, key: str) -> bool:
    """Whether a key of a provider's configuration holds a secret; by its name if the key is unknown."""
    info = PROVIDERS.get(provider)
    known = {value.key: value.secret for value in info.config_values} if info else {}
    return known.get(key, says_secret(key))


def is_written_out(value: str, is_secret: bool) -> bool:
    """Whether a value is a secret itself, not a reference to one.

    Args:
        is_secret: it is one by its key.
    """
    return bool(value and (is_secret or has_form(value)) and parse(value) is None)


def warnings_of(after: Definition, before: Definition | None = None) -> list[str]:
    """What is wrong with the secrets that a definition has written out, and what to do.

    Args:
        before: as it was: what it had then is not named again.
    """
    found = Counter(places(after)) - Counter(places(before) if before else ())
    return list(dict.fromkeys(_warning(place) for place, _ in found))


def warning(key: str, file: str) -> str:
    """What is wrong with a secret that is written out, and what to do."""
    return f"{key} is written out in {file}. Use a reference such as {variable(key)} instead."


def _warning(place: str) -> str:
    section, _, rest = place.partition(".")
    if section in ("providers", "mcpServers"):
        return warning(rest.partition(".")[2], "agent.yaml, and git would keep it")
    return warning_of(place)
