"""JSON Schemas (2020-12) of the files of a definition, for editors and programs that write them.

They describe the form that Workbench writes. It reads a little more, such as numbers that are written as text, and
checks more, such as whether names are unique.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, create_model
from pydantic.json_schema import GenerateJsonSchema

from workbench.rules.definitions.component import Component
from workbench.rules.definitions.layout import AGENT
from workbench.rules.definitions.model import Definition, PromptEntry
from workbench.rules.workplace import SCHEMA

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_IN_OTHER_FILES = ("prompt", "rules", "references")


class DefinitionFile(StrEnum):
    """A file of a definition: `agent.yaml`, or the front matter of a rule or reference."""

    AGENT = AGENT
    FRONT_MATTER = "front-matter"


def of_file(file: DefinitionFile) -> dict[str, Any]:
    """The JSON Schema of a file."""
    if file is DefinitionFile.AGENT:
        model = _without(Definition, *_IN_OTHER_FILES)
        title = f"{AGENT} of an agent definition"
    else:
        model = _without(PromptEntry, "text")
        title = "Front matter of a rule or reference of an agent definition"
    schema = model.model_json_schema(schema_generator=_Schema)
    if file is DefinitionFile.AGENT:
        schema["properties"].pop("workplace")
        schema["properties"] |= SCHEMA
    else:
        schema.pop("required", None)  # the name is that of the file
    return {"$schema": DIALECT, **schema, "title": title}


class _Schema(GenerateJsonSchema):
    """JSON Schema without the titles that pydantic derives from names, and closed where names have a pattern."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dict_schema(schema)
        return made | {"additionalProperties": False} if "patternProperties" in made else made


def _without(model: type[BaseModel], *names: str) -> type[BaseModel]:
    """A model with all fields of another one but some."""
    fields: dict[str, Any] = {
        name: (field.annotation, field) for name, field in model.model_fields.items() if name not in names
    }
    return create_model("File", __base__=Component, **fields)
