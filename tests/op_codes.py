"""Which error codes each operation can answer with, read from the code: what it raises, and what it calls raises."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from workbench import errors
from workbench.ops import Op

ROOT = Path(__file__).parent.parent
FAMILIES = {cls.__name__ for cls in errors.WorkbenchError.__subclasses__()} | {"WorkbenchError"}
EVERYWHERE = {
    "UNKNOWN_OPERATION",
    "INVALID_ARGUMENTS",
    "TOKEN_REQUIRED",
    "NOT_ASSIGNED",
    "REJECTED",
    "FORBIDDEN",
    "GRANT_EXPIRED",
    "TOOL_DISABLED",
    "NOT_ALLOWLISTED",
    "ALLOWLIST_UNREADABLE",
    "NO_SERVER",
}
"""Codes of the door itself; those of the store are besides."""
_LAYERS = (
    "services",
    "definitions",
    "rules",
    "git",
    "process",
    "allowlist.py",
    "atomic_file.py",
    "file_lock.py",
    "ops",
)
_DEFINITIONS = "workbench.definitions"
"""Reached by `ctx.definitions` alone: the names of its methods are too common."""
_TOO_COMMON = {
    *("get", "add", "all", "one", "run", "read", "write", "look", "append", "format", "items", "close", "start"),
    *("remove", "rename", "update", "pop", "union", "create", "path", "status", "references"),
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
    modules = dict(_modules())
    pieces = {(module, name): node for module, tree in modules.items() for name, node in _pieces(tree)}
    methods = _methods(place for place in pieces if not place[0].startswith(_DEFINITIONS))
    inside = _methods(place for place in pieces if place[0].startswith(_DEFINITIONS))
    handlers = {place for place, node in pieces.items() if _is_handler(node)}
    made = {}
    for (module, name), node in pieces.items():
        known = inside if module.startswith(_DEFINITIONS) else methods
        piece = made[module, name] = _read((module, name), node, _imports(modules[module]), known)
        if ("ctx", "decision_handlers") in piece.mentions:
            piece.mentions |= handlers
    for module, tree in modules.items():  # a package passes on names of its modules
        for name, place in _imports(tree).items():
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
    for layer in _LAYERS:
        place = ROOT / "workbench" / layer
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text("utf-8"))


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


def _read(place: Place, node: ast.stmt, names: Mapping[str, Place], methods: Mapping[str, list[Place]]) -> Piece:
    made, module = Piece(), place[0]
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=family), args=[code, *_]) if family in FAMILIES:
                made.codes |= {
                    part.value
                    for part in ast.walk(code)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isupper()
                }
            case ast.Name(id=name):
                made.mentions.add(names.get(name, (module, name)))
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                made.mentions.add((module, f"{place[1].partition('.')[0]}.{attr}"))
            case ast.Attribute():
                made.mentions |= set(_attribute(inner, names, methods))
    return made


def _attribute(node: ast.Attribute, names: Mapping[str, Place], methods: Mapping[str, list[Place]]) -> Iterator[Place]:
    match node.value:
        case ast.Name(id=name) if name in names:
            package, module = names[name]
            yield f"{package}.{module}", node.attr
            yield package, f"{module}.{node.attr}"
        case ast.Name(id="os"):
            return
        case ast.Name(id="ctx"):
            yield "ctx", node.attr
        case ast.Attribute(attr="allowlist"):
            yield "workbench.allowlist", f"Allowlist.{node.attr}"
        case ast.Attribute(attr="definitions"):
            yield "workbench.definitions.registry", f"Registry.{node.attr}"
    if node.attr not in _TOO_COMMON:
        yield from methods.get(node.attr, ())


def _imports(tree: ast.Module) -> dict[str, Place]:
    """What imported names stand for: `(module, name in it)`; a module is `(its package, its own name)`."""
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
