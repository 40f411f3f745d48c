"""The parameters that a notebook declares, the hash of what it does, and the check of values against it.

Parameters are the assignments in the cell with the tag `parameters`. They are read from Python's own syntax tree:
papermill's `inspect_notebook` loses those with a union as type, and reads a value together with the line below.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.rules.naming import similar
from workbench.rules.runs.values import NOT_FINITE
from workbench.rules.sweeps.values import bad_parameter

TAG = "parameters"
INJECTED = "injected-parameters"
"""The tag of the cell with the values of a run, which papermill adds."""
_COMMENT = re.compile(r"#\s*type:\s*([\w.\[\], |]+?)\s*$")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "number": (float, int),
    "str": (str,),
    "bool": (bool,),
    "list": (list, tuple),
    "sequence": (list, tuple),
    "iterable": (list, tuple),
    "dict": (dict,),
    "mapping": (dict,),
    "none": (type(None),),
}
"""The types that a run can be given, by the last part of their names in lower case."""
_ANYTHING = ("any", "object")
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
        types: what its values may be; empty: anything, unless `others` says otherwise. float alone: whole numbers
            become floats.
        default: its default value as the notebook has it.
        others: types of its annotation that no run can be given, such as a class of the notebook.
    """

    name: str
    types: tuple[type, ...]
    default: str
    others: tuple[str, ...] = ()

    def takes(self, value: Any) -> bool:
        """Whether a value has one of the types. A bool is no number."""
        if not self.types:
            return not self.others and not _is_not_finite(value)
        if isinstance(value, bool):
            return bool in self.types
        if _is_not_finite(value):
            return self._has_numbers and str not in self.types
        if isinstance(value, str) and self._is_spelled(value):
            return True
        return isinstance(value, self.types) or (float in self.types and isinstance(value, int) and _has_float(value))

    def received(self, value: Any) -> Any:
        """A value that it takes, as a run gets it: numbers that JSON has not are recorded as text, such as `NaN`."""
        if isinstance(value, str) and self._is_spelled(value):
            return NOT_FINITE[value]
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if is_whole and float in self.types and int not in self.types else value

    @property
    def _has_numbers(self) -> bool:
        return float in self.types

    def _is_spelled(self, text: str) -> bool:
        """Whether a text stands for a number."""
        return text in NOT_FINITE and self._has_numbers and str not in self.types

    @property
    def wanted(self) -> str:
        """The types in words."""
        named = dict.fromkeys([*(_WORDS[one] for one in self.types if one in _WORDS), *self.others])
        return " or ".join(named) or ("null" if self.types else "anything")

    @property
    def advice(self) -> str:
        """What to do so that it takes other values."""
        if self.others:
            named = "int, float, str, bool, list or dict"
            return f". No run can be given a {self.others[0]}: annotate it as {named}, and convert it in a later cell"
        return "" if self.types else ". Annotate it as float"


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


def require_one_place(notebook: Mapping[str, Any], path: str) -> None:
    """Refuse a notebook whose own cells would assign the parameters after the values of a run were put in.

    papermill puts them in the place of the first cell tagged `injected-parameters`, or else after the first one tagged
    `parameters`. Another tagged cell below would give them other values than the run's record says.

    Raises:
        BadInput: ``BAD_NOTEBOOK``.
    """
    cells = [(number, _tags(cell)) for number, cell in enumerate(_cells(notebook), 1)]
    injected = [number for number, tags in cells if INJECTED in tags]
    tagged = [number for number, tags in cells if TAG in tags]
    place = min(injected or tagged, default=0)
    if later := [number for number in sorted({*injected, *tagged}) if number > place]:
        raise BadInput(
            "BAD_NOTEBOOK",
            f"{path} has parameters in cells {place} and {later[0]}: the later one would replace the values of each "
            f"run. Keep one cell with the tag `{TAG}`, and remove the tag or the cell of the other.",
            cells=[place, *later],
        )


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
                shown, one = json.dumps(value), known[name]
                raise bad_parameter(f"{name} is {shown}, and {notebook} takes {one.wanted} there{one.advice}")


def received(notebook: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded values of a run as its notebook gets them; see `Parameter.received`."""
    known = (declared(notebook) if is_python(notebook) else None) or {}
    return {name: known[name].received(value) if name in known else value for name, value in arguments.items()}


def _unknown(name: str, known: Mapping[str, Parameter], notebook: str) -> BadInput:
    meant = similar(name, known)
    hint = f"Did you mean {meant}?" if meant else f"It has {', '.join(sorted(known)) or 'none'}."
    return BadInput("UNKNOWN_PARAMETER", f"{notebook} has no parameter {name}. {hint}", known=sorted(known))


def _assigned(tree: ast.Module, lines: list[str]) -> Iterator[Parameter]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield _parameter(node.target.id, node.annotation, node.value)
        elif isinstance(node, ast.Assign):
            comment = _COMMENT.search(lines[(node.end_lineno or 1) - 1])
            annotation = ast.Constant(comment[1]) if comment else None
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield _parameter(target.id, annotation, node.value)


def _parameter(name: str, annotation: ast.expr | None, value: ast.expr | None) -> Parameter:
    default = ast.unparse(value) if value else ""
    named = [] if annotation is None else [*_named(annotation)]
    if not named or any(isinstance(one, str) and one.lower() in _ANYTHING for one in named):
        return Parameter(name, _of_default(value) if annotation is None and value else (), default)
    types = tuple(dict.fromkeys(one for found in named if isinstance(found, tuple) for one in found))
    others = tuple(one for one in named if isinstance(one, str))
    if others and not types and value and "tuple" not in others and _is_literal(value):
        return Parameter(name, _of_default(value), default)  # another name of a type of the default
    return Parameter(name, types, default, others)


def _named(node: ast.expr) -> Iterator[tuple[type, ...] | str]:
    """The types that an annotation names: those of `_TYPES`, and the names of others."""
    match node:
        case ast.Constant(value=None):
            yield _TYPES["none"]
        case ast.Constant(value=str() as text):
            try:
                yield from _named(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _named(left)
            yield from _named(right)
        case ast.Subscript(value=outer, slice=inner):
            yield from _subscribed(_last(outer), inner.elts if isinstance(inner, ast.Tuple) else [inner])
        case _:
            name = _last(node)
            yield _TYPES.get(name.lower(), name)


def _subscribed(outer: str, inner: list[ast.expr]) -> Iterator[tuple[type, ...] | str]:
    match outer:
        case "Optional":
            yield from _named(inner[0])
            yield _TYPES["none"]
        case "Union":
            for one in inner:
                yield from _named(one)
        case "Annotated" | "Final":
            yield from _named(inner[0])
        case "Literal":
            for one in inner:
                if isinstance(one, ast.Constant) and type(one.value) in (str, int, bool, type(None)):
                    yield (type(one.value),)
        case _:
            yield _TYPES.get(outer.lower(), outer)


def _last(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return ast.unparse(node).rpartition(".")[2]


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _has_float(value: int) -> bool:
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _of_default(node: ast.expr) -> tuple[type, ...]:
    """What a parameter without an annotation takes: what is like its default. Any number is like another one."""
    if not _is_literal(node):
        return ()
    value = ast.literal_eval(node)
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
