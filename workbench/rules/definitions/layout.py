"""A definition as files: `agent.yaml`, `prompt.md`, `rules/<name>.md` and `references/<name>.md`.

Only what changes in a definition changes in its files, so that their differences are short and comments are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from workbench.errors import BadInput
from workbench.rules import front_matter
from workbench.rules.definitions import former_settings
from workbench.rules.definitions.model import DEFAULT_PROMPT, Definition, DefinitionMetadata, PromptEntry, normal
from workbench.rules.reasons import reason
from workbench.rules.workplace import KEYS
from workbench.rules.yaml_lines import is_same
from workbench.rules.yaml_text import InvalidYaml, edit, load, write

AGENT = "agent.yaml"
PROMPT = "prompt.md"
FOLDERS = ("rules", "references")
_SUFFIX = ".md"
M = TypeVar("M", bound=BaseModel)
_SECTIONS = ("metadata", "settings", "tools", "providers", "mcpServers")
_IN_AGENT = (*_SECTIONS, *KEYS)


def is_part(path: str) -> bool:
    """Whether a file, by its path below the directory of a definition, belongs to the definition.

    Hidden files do not: editors keep locks and backups in them.
    """
    folder, _, name = path.partition("/")
    is_entry = folder in FOLDERS and name.endswith(_SUFFIX) and not name.startswith(".") and "/" not in name
    return path in (AGENT, PROMPT) or (is_entry and name.isprintable())


def parse(files: Mapping[str, str]) -> Definition:
    """The definition that files contain.

    Args:
        files: the text of each file, by its path below the directory.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``; `details.file` and `details.line` say where, if that is known.
    """
    head = agent(files[AGENT])
    entries = {folder: list(_entries(files, folder)) for folder in FOLDERS}
    prompt = {"prompt": normal(files[PROMPT])} if PROMPT in files else {}
    try:
        return validated(Definition, {**head, **entries, **prompt}, AGENT)
    except BadInput as error:
        section, _, why = error.message.removeprefix(f"{AGENT}: ").partition(": ")
        file = {"prompt": PROMPT, **{folder: f"{folder}/" for folder in FOLDERS}}.get(section)
        if file is None:
            raise
        raise BadInput(error.code, f"{file}: {why}", file=file) from None


def agent(text: str) -> dict[str, Any]:
    """What an `agent.yaml` contains, by section; the sections are not validated.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    try:
        head = load(text)
    except InvalidYaml as error:
        raise invalid(AGENT, str(error), error.line) from None
    if not isinstance(head, dict):
        raise invalid(AGENT, "it is not a mapping", 1)
    if unknown := sorted(head.keys() - set(_IN_AGENT)):
        raise invalid(AGENT, f"unknown key {unknown[0]!r}; the keys are {', '.join(_IN_AGENT)}")
    known = {key: value for key, value in head.items() if value is not None}
    return known | {"settings": former_settings.stated(known["settings"])} if "settings" in known else known


def metadata(text: str) -> DefinitionMetadata:
    """What a definition is, of its `agent.yaml` alone.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    found = agent(text).get("metadata")
    return validated(DefinitionMetadata, found if isinstance(found, dict) else {}, AGENT)


def change(files: Mapping[str, str], definition: Definition) -> dict[str, str | None]:
    """The files that have to change to contain a definition: their new text, or None for those to be removed.

    Args:
        files: what is there; empty for a new definition.
    """
    wanted = dict(_texts(files, definition))
    gone = {path: None for path in files if is_part(path) and path not in wanted}
    return {path: text for path, text in wanted.items() if files.get(path) != text} | gone


def _entries(files: Mapping[str, str], folder: str) -> Iterator[PromptEntry]:
    for path in sorted(files):
        if is_part(path) and path.startswith(f"{folder}/"):
            yield _entry(path, files[path])


def _entry(path: str, text: str) -> PromptEntry:
    try:
        head, body = front_matter.split(text)
    except InvalidYaml as error:
        raise invalid(path, str(error), error.line) from None
    stem = PurePosixPath(path).stem
    if head.setdefault("name", stem) != stem:
        raise invalid(path, f"its name is {head['name']!r}, but the file is named {stem}{_SUFFIX}")
    return validated(PromptEntry, {**head, "text": normal(body)}, path)


def _texts(files: Mapping[str, str], definition: Definition) -> Iterator[tuple[str, str]]:
    yield AGENT, _agent_text(files.get(AGENT), definition)
    if PROMPT in files or not files or definition.prompt != DEFAULT_PROMPT:
        is_same = PROMPT in files and normal(files[PROMPT]) == definition.prompt
        yield PROMPT, files[PROMPT] if is_same else f"{definition.prompt}\n"
    for folder, entries in zip(FOLDERS, (definition.rules, definition.references), strict=True):
        for entry in entries:
            path = _path(folder, entry)
            known = path if path in files else _renamed(files, folder, entry, {_path(folder, each) for each in entries})
            yield path, _entry_text(known, files[known], entry) if known else _new_entry(entry)


def _agent_text(before: str | None, definition: Definition) -> str:
    shortest = _head(definition, exclude_defaults=True)
    if before is None:
        return write(shortest)
    stated = agent(before)
    old = validated(Definition, stated, AGENT)
    if _head(old) == _head(definition):
        return before
    return edit(before, edited(stated, _head(old), _head(definition), shortest))


def _head(definition: Definition, *, exclude_defaults: bool = False) -> dict[str, Any]:
    dumped = definition.model_dump(mode="json", by_alias=True, exclude_defaults=exclude_defaults)
    workplace: dict[str, Any] = dumped.get("workplace", {})
    return {key: dumped[key] for key in _SECTIONS if key in dumped} | workplace


def _path(folder: str, entry: PromptEntry) -> str:
    return f"{folder}/{entry.name}{_SUFFIX}"


def _renamed(files: Mapping[str, str], folder: str, entry: PromptEntry, wanted: Set[str]) -> str | None:
    """The file of an entry under the name that it had before: one that goes, and says the same."""
    for path in sorted(files):
        if is_part(path) and path.startswith(f"{folder}/") and path not in wanted:
            old = _entry(path, files[path]).model_copy(update={"name": entry.name})
            if old == entry or (old.text == entry.text and entry.text):
                return path
    return None


def _new_entry(entry: PromptEntry) -> str:
    return front_matter.join(_fields(entry), f"\n{entry.text}\n")


def _entry_text(path: str, before: str, entry: PromptEntry) -> str:
    """The text of an entry that has had another one, perhaps in a file of another name."""
    old, (head, body) = _entry(path, before), front_matter.split(before)
    if old == entry or ("name" not in head and old.model_copy(update={"name": entry.name}) == entry):
        return before
    was, fields = _fields(old), _fields(entry)
    stated = {key: value for key, value in fields.items() if key in head or (value != was[key] and key != "name")}
    return front_matter.join(stated, body if old.text == entry.text else f"\n{entry.text}\n", before)


def _fields(entry: PromptEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json", by_alias=True, exclude={"text"})


def validated(model: type[M], values: Mapping[str, Any], file: str) -> M:
    """A part of a definition, from what a file contains.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``, with the first thing that is wrong, never a value.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        why = _ID_MISSING if place.endswith("id") and first["type"] == "missing" else reason(first)
        raise invalid(file, f"{place}: {why}" if place else why) from None


_ID_MISSING = "required: a UUID of its own, such as `python -c 'import uuid; print(uuid.uuid4())'` prints"


def invalid(file: str, reason: str, line: int | None = None) -> BadInput:
    """The error for a file of a definition that says nothing valid; `line` counts from 1."""
    where = f"{file}, line {line}" if line else file
    details = {"file": file} | ({"line": line} if line else {})
    return BadInput("INVALID_CONFIGURATION", f"{where}: {reason}.", **details)


def edited(stated: Any, old: Any, new: Any, shortest: Any) -> Any:
    """What a file shall state, as JSON values.

    Args:
        stated: what it states.
        old: what that means, with all defaults.
        new: what it shall mean, with all defaults.
        shortest: what it shall mean, without defaults.
    """
    if is_same(old, new):
        return stated
    if isinstance(stated, dict) and isinstance(old, dict) and isinstance(new, dict):
        return _mapping(stated, old, new, shortest)
    if isinstance(stated, list) and isinstance(old, list) and isinstance(new, list) and len(stated) == len(old):
        return [_item(stated, old, item, short) for item, short in zip(new, shortest, strict=True)]
    return shortest


def _mapping(stated: dict[str, Any], old: dict[str, Any], new: dict[str, Any], shortest: dict[str, Any]) -> Any:
    kept = {
        key: edited(value, old[key], new[key], shortest.get(key, {} if isinstance(new[key], dict) else new[key]))
        for key, value in stated.items()
        if key in old and key in new and (new[key] is not None or old[key] is None)
    }
    return kept | {key: value for key, value in shortest.items() if key not in kept}


def _item(stated: list[Any], old: list[Any], item: Any, shortest: Any) -> Any:
    """An item of a list as it is stated already, or without defaults."""
    forms = (form for form, meaning in zip(stated, old, strict=True) if is_same(meaning, item))
    return next(forms, shortest)
