"""The drafts of JSON Schema in which tools describe their arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REASON = 200
"""Characters of a reason."""


def draft_of(schema: Mapping[str, Any]) -> Any:
    """The validator class of the draft that a schema declares; if it is not valid there, of the newest where it is.

    Regular expressions are not looked at: they are those of JavaScript, and some take forever.

    Raises:
        ValueError: it is no schema of any draft; with the reason.
    """
    # Imported here: with the packages of JupyterLab it loads a parser of addresses, which takes a second.
    from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator, FormatChecker, SchemaError
    from jsonschema.validators import validator_for

    declared: Any = validator_for(schema, default=Draft202012Validator)
    wrong = ""
    drafts: list[Any] = [declared, Draft202012Validator, Draft7Validator, Draft4Validator]
    for draft in dict.fromkeys(drafts):
        try:
            draft.check_schema(schema, format_checker=FormatChecker(()))
        except SchemaError as error:
            wrong = wrong or error.message[:REASON]
        else:
            return draft
    raise ValueError(wrong)
