"""The parameters that a notebook declares, the hash of what it does, and the check of values against it.

Parameters are the assignments in the cell with the tag `parameters`. They are read from Python's own syntax tree:
papermill's `inspect_notebook` loses those with a union as type, and reads a value together with the line below.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.rules.spelling import similar
from workbench.rules.sweeps.values import bad_parameter

TAG = "parameters"
_COMMENT = re.compile(r"#\s*type:\s*([\w.\[\], |]+?)\s*$")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "list": (list, tuple),
    "tuple": (list, tuple),
    "dict": (dict,),
    "None": (type(None),),
}
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter that a notebook declares.

    Args:
        types: what its values may be; empty: anything.
        default: its default value as the notebook has it.
    """

    name: str
    types: tuple[type, ...]
    default: str

    def takes(self, value: Any) -> bool:
        """Whether a value has one of the types. A bool is no number."""
        if isinstance(value, bool):
            return not self.types or bool in self.types
        return not self.types or isinstance(value, self.types)

    @property
    def wanted(self) -> str:
        """The types in words."""
        return " or ".join(dict.fromkeys(_WORDS[one] for one in self.types if one in _WORDS)) or "null"


def content_hash(notebook: Mapping[str, Any]) -> str:
    """SHA-256 of the language and the cells: kind, source, tags. Outputs and other metadata do not count."""
    cells = [[cell.get("cell_type"), _source(cell), sorted(_tags(cell))] for cell in _cells(notebook)]
    return hashlib.sha256(json.dumps([language(notebook), cells]).encode()).hexdigest()


def is_python(notebook: Mapping[str, Any]) -> bool:
    """Whether a notebook is in Python."""
    return language(notebook) in ("python", "python3", "ipython", "")


def declared(notebook: Mapping[str, Any]) -> dict[str, Parameter] | None:
    """The parameters that a notebook in Python declares; None if it has no cell for them.

    Raises:
        BadInput: ``BAD_NOTEBOOK``: the cell is not Python.
    """
    cell = next((one for one in _cells(notebook) if TAG in _tags(one)), None)
    if cell is None:
        return None
    source = _source(cell)
    try:
        tree = ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadInput("BAD_NOTEBOOK", f"The cell with the tag {TAG} is not Python: {error}.") from None
    return {one.name: one for one in _assigned(tree, source.splitlines())}


def of_papermill(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Parameter]:
    """The parameters of a notebook in another language, as papermill's `inspect_notebook` tells them."""
    return {name: Parameter(name, (), str(one.get("default", ""))) for name, one in found.items()}


def check(parameters: Mapping[str, Parameter] | None, values: Mapping[str, Iterable[Any]], notebook: str) -> None:
    """Refuse values that the notebook does not take.

    Raises:
        BadInput: ``UNKNOWN_PARAMETER``, ``BAD_PARAMETER`` (another type).
    """
    if parameters is None and values:
        raise BadInput(
            "UNKNOWN_PARAMETER",
            f"{notebook} declares no parameters. Give the cell that assigns their defaults the tag `{TAG}`.",
        )
    known = parameters or {}
    for name, wanted in values.items():
        if name not in known:
            raise _unknown(name, known, notebook)
        for value in wanted:
            if not known[name].takes(value):
                raise bad_parameter(f"{name} is {json.dumps(value)}, and {notebook} takes {known[name].wanted} there")


def _unknown(name: str, known: Mapping[str, Parameter], notebook: str) -> BadInput:
    meant = similar(name, known)
    hint = f"Did you mean {meant}?" if meant else f"It has {', '.join(sorted(known)) or 'none'}."
    return BadInput("UNKNOWN_PARAMETER", f"{notebook} has no parameter {name}. {hint}", known=sorted(known))


def _assigned(tree: ast.Module, lines: list[str]) -> Iterator[Parameter]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            default = ast.unparse(node.value) if node.value else ""
            yield Parameter(node.target.id, _annotated(ast.unparse(node.annotation)), default)
        elif isinstance(node, ast.Assign):
            comment = _COMMENT.search(lines[(node.end_lineno or 1) - 1])
            types = _annotated(comment[1]) if comment else _of_default(node.value)
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield Parameter(target.id, types, ast.unparse(node.value))


def _annotated(text: str) -> tuple[type, ...]:
    """The types that an annotation names; empty if it names others too."""
    optional = re.fullmatch(r"(?:\w+\.)*Optional\[(.*)\]", text)
    names = [optional[1], "None"] if optional else text.split("|")
    found: list[type] = []
    for name in names:
        plain = re.sub(r"\[.*", "", name).strip().rpartition(".")[2]
        types = _TYPES.get(plain) or _TYPES.get(plain.lower())
        if types is None:
            return ()
        found += types
    return tuple(found)


def _of_default(node: ast.expr) -> tuple[type, ...]:
    """What a parameter without an annotation takes: what is like its default. Any number is like another one."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ()
    if isinstance(value, bool):
        return (bool,)
    if isinstance(value, int | float):
        return (float, int)
    return next((types for types in (_TYPES["str"], _TYPES["list"], _TYPES["dict"]) if isinstance(value, types)), ())


def _cells(notebook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    cells = notebook.get("cells")
    return [cell for cell in cells if isinstance(cell, Mapping)] if isinstance(cells, list) else []


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _tags(cell: Mapping[str, Any]) -> list[str]:
    tags = (cell.get("metadata") or {}).get("tags")
    return [str(tag) for tag in tags] if isinstance(tags, list) else []


def language(notebook: Mapping[str, Any]) -> str:
    """The language of a notebook, in lower case; empty: it does not say."""
    metadata = notebook.get("metadata") or {}
    kernel, language = metadata.get("kernelspec") or {}, metadata.get("language_info") or {}
    return str(kernel.get("language") or language.get("name") or "").lower()
