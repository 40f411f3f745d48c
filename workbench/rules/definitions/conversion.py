"""Converts the fields of older layouts: what has another name now gets it, and what has no place now is named.

Computed values are dropped: vectors of texts (`embeddings`, `hash`) and times of access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from workbench.rules.definitions.layout import invalid, validated
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer, ToolRule, variable_as_reference
from workbench.rules.definitions.model import (
    Definition,
    DefinitionMetadata,
    ExportedTool,
    ModelSettings,
    Organization,
    PromptEntry,
    Skill,
)
from workbench.rules.definitions.names import fitting
from workbench.rules.definitions.providers import ALIASES, PROVIDERS
from workbench.rules.definitions.secrets.references import variable

COMPUTED = frozenset({"embeddings", "hash", "toolEmbeddings", "lastAccessed"})
"""Fields that are computed from others, or from use."""
_INTERNAL = "internal"
"""The type of MCP servers that were part of the agent's program."""
_LATEST_MODEL = "mostRecentModel"


@dataclass(frozen=True, slots=True)
class Converted:
    """A definition that was read from an older layout.

    Args:
        changed: what is written in another way now, a sentence each.
        left_out: the places of what has no place now, such as ``supervisors``.
    """

    definition: Definition
    changed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def convert(file: str, fields: Mapping[str, Any], definition_id: str) -> Converted:
    """Make a definition of fields that have the names of a `Definition`, but the content of an older layout.

    Args:
        file: where they are from, for messages.
        definition_id: its id if the fields name none.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    conversion = _Conversion(file)
    definition = validated(Definition, conversion.fields(fields, definition_id), file)
    return Converted(definition, tuple(conversion.changed), tuple(conversion.left_out))


class _Conversion:
    """One conversion; notes what it changes and leaves out."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.changed: list[str] = []
        self.left_out: list[str] = []

    def fields(self, given: Mapping[str, Any], definition_id: str) -> dict[str, Any]:
        """The fields of the definition."""
        known = self._known("", given, Definition)
        metadata = self._mapping("metadata", known.get("metadata"))
        tools = self._list("metadata.tools", metadata.pop("tools", None)) + self._list("tools", known.get("tools"))
        return known | {
            "metadata": self._metadata(metadata, definition_id, has_tools=bool(tools)),
            "settings": self._settings(self._mapping("settings", known.get("settings"))),
            "rules": self._named("rules", known.get("rules"), self._entry),
            "references": self._named("references", known.get("references"), self._entry),
            "tools": self._named("tools", tools, lambda place, tool: self._known(place, tool, ExportedTool)),
            "providers": self._providers(self._mapping("providers", known.get("providers"))),
            "mcpServers": self._servers(self._mapping("mcpServers", known.get("mcpServers"))),
        }

    def _metadata(self, given: dict[str, Any], definition_id: str, *, has_tools: bool) -> dict[str, Any]:
        autonomous = given.pop("autonomous", None) in (True, "true")
        mode = "tools" if has_tools else "autonomous" if autonomous else None
        known = self._known("metadata", given, DefinitionMetadata)
        if "provider" in known:
            provider = self._mapping("metadata.provider", known["provider"])
            known["provider"] = self._known("metadata.provider", provider, Organization)
        if "skills" in known:
            known["skills"] = self._named("metadata.skills", known["skills"], self._skill, key="id")
        return {"id": definition_id} | ({"mode": mode} if mode else {}) | known

    def _skill(self, place: str, skill: dict[str, Any]) -> dict[str, Any]:
        known = self._known(place, skill, Skill)
        return {"name": skill.get("id"), **known}

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """Settings; numbers that are written as text are read as numbers by `Settings`."""
        latest = given.pop(_LATEST_MODEL, None)
        standard = _names(ModelSettings)
        settings = {key: value for key, value in given.items() if key not in standard or value not in (None, "")}
        if latest and "model" not in settings:
            settings["model"] = latest
            self.changed.append(f"settings.{_LATEST_MODEL} is settings.model now.")
        provider, colon, model = str(settings.get("model", "")).partition(":")
        if colon and provider in ALIASES:
            settings["model"] = f"{ALIASES[provider]}:{model}"
            self._renamed("settings.model", provider, ALIASES[provider])
        return settings

    def _entry(self, place: str, given: dict[str, Any]) -> dict[str, Any]:
        entry = dict(given)
        if entry.pop("enabled", True) in (False, "false"):
            entry["include"] = "manual"
            self.changed.append(f"{place} was disabled: it is included on request only.")
        level = entry.get("priorityLevel")
        if isinstance(level, str) and level.isdecimal():
            entry["priorityLevel"] = int(level)
        return self._known(place, entry, PromptEntry)

    def _providers(self, given: dict[str, Any]) -> dict[str, Any]:
        providers: dict[str, Any] = {}
        for name, config in given.items():
            new = ALIASES.get(name.lower(), name)
            if new in providers or (new != name and new in given):
                self.left_out.append(f"providers.{name}")
                continue
            if new != name:
                self._renamed("providers", name, new)
            values = self._mapping(f"providers.{name}", config)
            providers[new] = {key: value if isinstance(value, str) else str(value) for key, value in values.items()}
            needed = PROVIDERS[new].config_values if new in PROVIDERS and not values else ()
            for key in (value.key for value in needed if value.required):
                providers[new][key] = variable(key)
                self.changed.append(f"providers.{new}.{key} is {variable(key)}, where it was looked for before.")
        return providers

    def _servers(self, given: dict[str, Any]) -> dict[str, Any]:
        servers: dict[str, Any] = {}
        for name, value in given.items():
            place = f"mcpServers.{name}"
            server = self._mapping(place, value)
            if server.get("type") == _INTERNAL:
                self.left_out.append(place)
                continue
            new = fitting(name, servers)
            if new != name:
                self._renamed("mcpServers", name, new)
            servers[new] = self._server(place, server)
        return servers

    def _server(self, place: str, given: dict[str, Any]) -> dict[str, Any]:
        model = StdioServer if given.get("type") == "stdio" or "command" in given else HttpServer
        server = self._known(place, given, model)
        if "serverToolDefaults" in server:
            defaults = self._mapping(f"{place}.serverToolDefaults", server["serverToolDefaults"])
            server["serverToolDefaults"] = self._known(f"{place}.serverToolDefaults", defaults, ToolRule)
        for field in ("env", "headers"):
            if field in server:
                values = self._mapping(f"{place}.{field}", server[field])
                server[field] = {key: self._reference(f"{place}.{field}.{key}", value) for key, value in values.items()}
        tools = self._mapping(f"{place}.tools", server.get("tools"))
        rules = {name: self._mapping(f"{place}.tools.{name}", rule) for name, rule in tools.items()}
        known = {name: self._known(f"{place}.tools.{name}", rule, ToolRule) for name, rule in rules.items()}
        return server | {"tools": {name: rule for name, rule in known.items() if rule}}

    def _reference(self, place: str, value: Any) -> Any:
        """A value in which ``${NAME}`` stood for a variable, alone or after the scheme of a header, as a reference."""
        reference = variable_as_reference(value)
        if reference != value:
            name = reference.rpartition("://")[2]
            self.changed.append(f"{place} refers to the variable {name} as env://{name} now.")
        return reference

    def _named(
        self,
        place: str,
        given: Any,
        convert_one: Callable[[str, dict[str, Any]], dict[str, Any]],
        key: str = "name",
    ) -> list[dict[str, Any]]:
        """Converts the items of a list, and makes their names valid and unique."""
        made: dict[str, dict[str, Any]] = {}
        for item in self._list(place, given):
            name = item.get(key)
            if not isinstance(name, str) or not name:
                raise invalid(self._file, f"{place}: an item has no {key}")
            new = fitting(name, made)
            if new != name:
                self._renamed(place, name, new)
            made[new] = convert_one(f"{place}.{name}", item) | {key: new}
        return list(made.values())

    def _renamed(self, place: str, name: str, new: str) -> None:
        self.changed.append(f"{place}: {name!r} is named {new!r} now.")

    def _known(self, place: str, given: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
        """The fields that a model has; null is none."""
        names = _names(model)
        unknown = (key for key in given if key not in names and key not in COMPUTED)
        self.left_out.extend(f"{place}.{key}" if place else key for key in unknown)
        return {key: value for key, value in given.items() if key in names and value is not None}

    def _mapping(self, place: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict | None):
            raise invalid(self._file, f"{place} is not a mapping")
        return dict(value or {})

    def _list(self, place: str, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list | None) or not all(isinstance(item, dict) for item in value or ()):
            raise invalid(self._file, f"{place} is not a list of mappings")
        return list(value or ())


def _names(model: type[BaseModel]) -> Iterable[str]:
    """The names of a model's fields in files."""
    return {field.alias or name for name, field in model.model_fields.items()}
