"""Which error codes each operation can answer with, read from the code: what it raises, and what it calls raises."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from docs.generator import ROOT
from docs.generator.op_types import FOREIGN, Known, Types
from workbench import errors
from workbench.ops import Op

FAMILIES = {cls.__name__ for cls in errors.WorkbenchError.__subclasses__()} | {"WorkbenchError"}
EVERYWHERE = {
    *("UNKNOWN_OPERATION", "INVALID_ARGUMENTS", "TOKEN_REQUIRED", "NOT_ASSIGNED", "REJECTED", "FORBIDDEN"),
    *("GRANT_EXPIRED", "TOOL_DISABLED", "NOT_ALLOWLISTED", "ALLOWLIST_UNREADABLE", "NO_SERVER"),
}
"""Codes of the door itself; those of the store are besides."""
_LAYERS = (
    *("services", "definition_files", "drivers", "rules", "git", "koi", "functions", "process"),
    "confinement/lending.py",
    *("trust/allowlist.py", "system/atomic_file.py", "system/file_lock.py"),
    *(f"ops/{name}.py" for name in ("caller", "context", "dispatch", "operation", "parameters")),
)
_DEFINITIONS = "workbench.definition_files"
"""Reached by `ctx.definitions` alone: the names of its methods are too common."""
_TOO_COMMON = {
    *("get", "add", "all", "one", "run", "read", "write", "look", "append", "format", "items", "close", "start"),
    *("remove", "rename", "update", "pop", "union", "create", "path", "status", "references", "open", "contents"),
}
"""Names of methods that say nothing of whose they are."""


Place = tuple[str, str]
"""A module, and a name in it; ``Class.method`` for methods."""


@dataclass
class Piece:
    """A function, a method or a constant of a module: the codes it raises itself, and what it mentions."""

    codes: set[str] = field(default_factory=set)
    mentions: set[Place] = field(default_factory=set)


@cache
def codes_of(op: Op) -> list[str]:
    """Codes that are the operation's own, in alphabetical order."""
    graph = _graph()
    seen: set[Place] = set()
    waiting = [(op.fn.__module__, op.fn.__name__)]
    found = {op.invalid}
    while waiting:
        at = waiting.pop()
        if at not in seen and at in graph:
            seen.add(at)
            found |= graph[at].codes
            waiting.extend(graph[at].mentions)
    return sorted(found - EVERYWHERE)


@cache
def _graph() -> Mapping[Place, Piece]:
    everything = dict(_modules())
    imports = {module: _imports(tree) for module, tree in everything.items()}
    types = Types(everything, imports)
    modules = {module: everything[module] for module in _names(_LAYERS)}
    pieces = {(module, name): node for module, tree in modules.items() for name, node in _pieces(tree)}
    methods = _methods(place for place in pieces if not place[0].startswith(_DEFINITIONS))
    inside = _methods(place for place in pieces if place[0].startswith(_DEFINITIONS))
    handlers = {place for place, node in pieces.items() if _is_handler(node)}
    made = {}
    for (module, name), node in pieces.items():
        known = inside if module.startswith(_DEFINITIONS) else methods
        reader = _Reader((module, name), imports[module], known, types, types.scope((module, name), node))
        piece = made[module, name] = reader.read(node)
        if ("ctx", "decision_handlers") in piece.mentions:
            piece.mentions |= handlers
    for module in modules:  # a package passes on names of its modules
        for name, place in imports[module].items():
            made.setdefault((module, name), Piece(mentions={place}))
    return made


def _methods(places: Iterable[Place]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for module, name in places:
        if "." in name:
            found.setdefault(name.rpartition(".")[2], []).append((module, name))
    return found


def _is_handler(node: ast.stmt) -> bool:
    """Whether it is what happens when an approval is decided: called by kind, never by name."""
    return isinstance(node, _FUNCTION) and any("decision_handler" in ast.unparse(mark) for mark in node.decorator_list)


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in _files(""):
        yield _name(path), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module; to make those of all takes seconds."""
    return ast.parse(path.read_text("utf-8"))


def _names(layers: Iterable[str]) -> Iterator[str]:
    """The modules of layers."""
    return (_name(path) for layer in layers for path in _files(layer))


def _files(layer: str) -> list[Path]:
    place = ROOT / "workbench" / layer
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def _pieces(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node
            case ast.ClassDef(name=name, body=body):
                yield from ((f"{name}.{inner.name}", inner) for inner in body if isinstance(inner, _FUNCTION))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node


def codes_in(expression: ast.expr) -> set[str]:
    """The codes that an expression may have as its value."""
    constants = (node.value for node in ast.walk(expression) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str) and value.isupper()}


@dataclass(frozen=True)
class _Reader:
    """Reads what a piece mentions.

    Args:
        names: what imported names stand for.
        methods: of all classes, by name: for values whose class is not known.
        scope: the classes of names in the piece, as far as they are known.
    """

    place: Place
    names: Mapping[str, Place]
    methods: Mapping[str, list[Place]]
    types: Types
    scope: Mapping[str, Known]

    def read(self, node: ast.stmt) -> Piece:
        made, module = Piece(), self.place[0]
        for inner in ast.walk(node):
            match inner:
                case ast.Call(func=ast.Name(id=family), args=[code, *_]) if family in FAMILIES:
                    made.codes |= codes_in(code)
                case ast.Name(id=name):
                    made.mentions.add(self.names.get(name, (module, name)))
                case ast.Attribute():
                    made.mentions |= set(self._attribute(inner))
        return made

    def _is_local(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Name) and value.id in self.scope

    def _attribute(self, node: ast.Attribute) -> Iterator[Place]:
        """The targets of ``value.name``: a function of a module, or a method of the value's class."""
        if not self._is_local(node.value) and (module := self.types.module(self.place[0], node.value)) is not None:
            yield module, node.attr
            return
        match node.value:
            case ast.Name(id="ctx"):
                yield "ctx", node.attr
        owner = self.types.of(self.place[0], node.value, self.scope)
        if owner is not None:
            yield from self.types.owners(owner, node.attr) if owner != FOREIGN else ()
        elif node.attr not in _TOO_COMMON:
            yield from self.methods.get(node.attr, ())


def _imports(tree: ast.Module) -> dict[str, Place]:
    """The targets of imported names: `(module, name in it)`; a module is `(its package, its own name)`."""
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
