"""Questions of MCP servers to a person (elicitation): the form by the server's schema, and what to beware of.

Specification: https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from workbench.rules.secrets.forms import says_secret

MOST_FIELDS, LONGEST_SCHEMA = 50, 50_000


def properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields of a form, by name."""
    found = schema.get("properties")
    found = found if isinstance(found, Mapping) else {}
    return {str(name): field if isinstance(field, Mapping) else {} for name, field in found.items()}


def problem(schema: Mapping[str, Any]) -> str | None:
    """Why a form cannot be shown; None if it can."""
    if len(properties(schema)) > MOST_FIELDS:
        return f"its form has more than {MOST_FIELDS} fields"
    if len(json.dumps(schema)) > LONGEST_SCHEMA:
        return f"its form has more than {LONGEST_SCHEMA:,} characters"
    return "its form is none of the protocol" if _is_odd(schema) else None


def _is_odd(schema: Mapping[str, Any]) -> bool:
    """Whether a form has something else where the protocol has a list."""
    required = schema.get("required") or []
    choices = [field.get(key) or [] for field in properties(schema).values() for key in ("oneOf", "enum")]
    are_names = isinstance(required, list) and all(isinstance(name, str) for name in required)
    return not are_names or not all(isinstance(listed, list) for listed in choices)


def shown_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A form as it is shown and checked: it has no other fields, and what looks like a secret is not shown as typed."""
    fields = {
        name: _with_choices({**field, "format": "password"} if _is_secret(name, field) else dict(field))
        for name, field in properties(schema).items()
    }
    required = [name for name in schema.get("required") or () if name in fields]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _with_choices(field: dict[str, Any]) -> dict[str, Any]:
    """A field whose choices with titles are listed as other choices are; the titles are in its description."""
    choices = [choice for choice in field.get("oneOf") or () if isinstance(choice, Mapping) and "const" in choice]
    if not choices:
        return field
    titles = [f"{choice['const']}: {choice['title']}" for choice in choices if choice.get("title")]
    description = "; ".join(filter(None, [str(field.get("description") or ""), *titles]))
    others = {name: value for name, value in field.items() if name != "oneOf"}
    return {**others, "enum": [choice["const"] for choice in choices], "description": description}


def secret_fields(schema: Mapping[str, Any]) -> list[str]:
    """The fields that look like secrets, which servers are not to ask for in a form."""
    return [name for name, field in properties(schema).items() if _is_secret(name, field)]


def _is_secret(name: str, field: Mapping[str, Any]) -> bool:
    said = [name, str(field.get("title") or "").replace(" ", "_")]
    return field.get("format") == "password" or field.get("writeOnly") is True or any(map(says_secret, said))


def is_link(url: str) -> bool:
    """Whether an address may be shown as a link: one of the web, with a host, that hides none behind a user's name."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def typed(field: Mapping[str, Any], text: str) -> Any:
    """The value of a field that a person typed as text.

    Raises:
        ValueError: it is none of its type.
    """
    kind = field.get("type")
    if kind == "boolean":
        words = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}
        if text.strip().lower() not in words:
            raise ValueError("it is yes or no")
        return words[text.strip().lower()]
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "array":
        stripped = text.strip()
        return json.loads(stripped) if stripped.startswith("[") else [item.strip() for item in stripped.split(",")]
    return text
