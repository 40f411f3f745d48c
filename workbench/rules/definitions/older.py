"""Reads two older layouts: `tsagent.json` with `*.mdt` files, and one YAML file.

What the fields of these layouts become is in `conversion`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from workbench.rules import front_matter
from workbench.rules.definitions.conversion import Converted, convert
from workbench.rules.definitions.layout import PROMPT, invalid
from workbench.rules.wire import json_safety
from workbench.rules.yaml_text import InvalidYaml, load

JSON_AGENT = "tsagent.json"
YAML_AGENTS = ("tsagent.yaml", "tsagent.yml")
PROMPT_KEY = "systemPrompt"
YAML_SUFFIXES = (".yaml", ".yml")
FOLDERS = {"rules": "rules", "refs": "references"}
"""The folders of rules and references beside `tsagent.json`, and what they are called now."""
_SUFFIX = ".mdt"


def agent_file(names: Collection[str]) -> str | None:
    """Of the files in a directory, the one that makes it a definition in an older layout: YAML, if there are both."""
    return next((name for name in (*YAML_AGENTS, JSON_AGENT) if name in names), None)


def is_part(agent: str, path: str) -> bool:
    """Whether a file, by its path below the directory, belongs to the definition with this agent file."""
    parts = PurePosixPath(path).parts
    is_entry = len(parts) == 2 and parts[0] in FOLDERS and path.endswith(_SUFFIX)
    return path == agent or (agent == JSON_AGENT and (path == PROMPT or is_entry))


def parse(agent: str, files: Mapping[str, str], definition_id: str) -> Converted:
    """The definition that files contain.

    Args:
        agent: the path of the agent file.
        files: the text of each file that belongs to it, by its path.
        definition_id: its id if the files name none.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``; `details.file` and `details.line` say where, if that is known.
    """
    texts = {path: text.removeprefix("\ufeff") for path, text in files.items()}
    if agent == JSON_AGENT:
        return convert(agent, _json_head(texts) | _beside(texts), definition_id)
    head = _mapping(agent, _yaml(agent, texts[agent]))
    prompt = {"prompt": head.pop(PROMPT_KEY)} if PROMPT_KEY in head else {}
    return convert(agent, head | prompt, definition_id)


def _json_head(files: Mapping[str, str]) -> dict[str, Any]:
    try:
        head = _mapping(JSON_AGENT, json_safety.decode(files[JSON_AGENT]))
    except ValueError as error:
        raise invalid(JSON_AGENT, str(error)) from None
    if misplaced := sorted(head.keys() & {PROMPT_KEY, "prompt", *FOLDERS.values()}):
        raise invalid(JSON_AGENT, f"{misplaced[0]} belongs in a file of its own")
    return head


def _beside(files: Mapping[str, str]) -> dict[str, Any]:
    """What is not in `tsagent.json`: the prompt, rules and references."""
    entries: dict[str, Any] = {new: list(_entries(files, old)) for old, new in FOLDERS.items()}
    return entries | ({"prompt": files[PROMPT]} if PROMPT in files else {})


def _entries(files: Mapping[str, str], folder: str) -> Iterator[dict[str, Any]]:
    for path in sorted(files):
        if path.startswith(f"{folder}/") and path.endswith(_SUFFIX):
            yield {"name": PurePosixPath(path).stem, **entry(path, files[path])}


def entry(path: str, text: str) -> dict[str, Any]:
    """The fields of a rule or reference.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    try:
        head, body = front_matter.parts(text)
    except InvalidYaml as error:
        raise invalid(path, str(error), error.line) from None
    stated = {key: value for key, value in _front_matter(path, head).items() if value is not None}
    return {**stated, "text": body}


def _front_matter(path: str, head: str) -> dict[str, Any]:
    """Front matter as JSON or as YAML; JSON first, because not all of its escapes are YAML's."""
    if head.lstrip().startswith("{"):
        try:
            return _mapping(path, json_safety.decode(head))
        except json_safety.NotJson:
            pass
        except ValueError as error:
            raise invalid(path, str(error)) from None
    return _mapping(path, _yaml(path, head, above=1) or {})


def _yaml(path: str, text: str, above: int = 0) -> Any:
    """What YAML contains; there are so many lines `above` it in the file."""
    try:
        return load(text)
    except InvalidYaml as error:
        raise invalid(path, str(error), error.line and error.line + above) from None


def _mapping(path: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(path, "it is not a mapping")
    return dict(value)
