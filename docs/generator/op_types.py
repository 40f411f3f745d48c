"""Which class the value of an expression has, as far as annotations say; for `op_codes`.

What they do not say is `None`; what is not one of the classes that were read is `FOREIGN`, whose methods raise nothing
of ours.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Place = tuple[str, str]
"""A module, and a name in it."""
FOREIGN: Place = ("", "")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
Known = Place | None


@dataclass
class Class:
    """A class: what its bases and fields are annotated with, and its methods."""

    place: Place
    bases: list[Place] = field(default_factory=list)
    fields: dict[str, ast.expr] = field(default_factory=dict)
    methods: dict[str, FUNCTION] = field(default_factory=dict)


class Types:
    """The classes and functions of some modules.

    Args:
        modules: their trees by name.
        imports: by module what the names stand for that it imports.
    """

    def __init__(self, modules: Mapping[str, ast.Module], imports: Mapping[str, Mapping[str, Place]]) -> None:
        self._imports = imports
        self._modules = modules
        self.classes: dict[Place, Class] = {}
        self._functions: dict[Place, FUNCTION] = {}
        self._variables: dict[Place, ast.stmt] = {}
        self._libraries: dict[str, set[str]] = {}
        self._families: dict[Place, list[Place]] = {}
        for module, tree in modules.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    self.classes[module, node.name] = Class((module, node.name))
                elif isinstance(node, FUNCTION):
                    self._functions[module, node.name] = node
                else:
                    self._variables |= {(module, name): node for name in _names(node)}
            self._libraries[module] = set(_libraries(tree))
        for module, tree in modules.items():
            for node in (one for one in tree.body if isinstance(one, ast.ClassDef)):
                self._fill(self.classes[module, node.name], node)

    def owners(self, place: Place, name: str) -> list[Place]:
        """The methods that a call of `name` on a value of a class can reach: its own or inherited, and overriding."""
        found = [one for one in self._family(place) if name in self.classes[one].methods]
        return [(module, f"{cls}.{name}") for module, cls in found]

    def scope(self, place: Place, node: ast.AST) -> Mapping[str, Known]:
        """The classes of the names in a function or a method: parameters, and what is assigned to them."""
        module = place[0]
        cls = (module, place[1].partition(".")[0])
        names: dict[str, Known] = {"self": cls, "cls": cls} if cls in self.classes else {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.arg):
                if inner.arg not in ("self", "cls"):
                    names[inner.arg] = self.annotated(module, inner.annotation, cls)
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                names[inner.target.id] = self.annotated(module, inner.annotation, cls)
        assigned: dict[str, set[Known]] = {}
        for target, value in _assigned(node):
            assigned.setdefault(target, set()).add(self.of(module, value, names) if value is not None else None)
        return {name: found.pop() for name, found in assigned.items() if len(found) == 1} | names

    def of(self, module: str, value: ast.expr, names: Mapping[str, Known]) -> Known:
        """The class of an expression."""
        match value:
            case ast.Name(id=name):
                return names.get(name) if name in names else self._of_name(module, name)
            case ast.Await(value=inner):
                return self.of(module, inner, names)
            case ast.Call(func=ast.Name(id=name)) if name not in names:
                place = self._resolved(module, name)
                if place in self.classes:
                    return place
                return self._returned(self._functions.get(place), place)
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)):
                owner = self.module(module, inner)
                if owner is not None:
                    place = (owner, attr)
                    return place if place in self.classes else self._returned(self._functions.get(place), place)
                return self._member(self.of(module, inner, names), attr)
            case ast.Attribute(value=inner, attr=attr):
                return self._member(self.of(module, inner, names), attr)
            case ast.Constant() | ast.JoinedStr() | ast.List() | ast.Dict() | ast.Set() | ast.Tuple():
                return FOREIGN
            case ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.GeneratorExp() | ast.Compare():
                return FOREIGN
        return None

    def annotated(self, module: str, annotation: ast.expr | None, cls: Place | None = None) -> Known:
        """The class that an annotation names; None if it names several, or none."""
        match annotation:
            case ast.Name(id="Self"):
                return cls
            case ast.Name(id="Any") | None:
                return None
            case ast.Name(id=name):
                place = self._resolved(module, name)
                return place if place in self.classes else None if self._is_alias(place) else FOREIGN
            case ast.Constant(value=str(text)):
                return self.annotated(module, ast.parse(text, mode="eval").body, cls)
            case ast.BinOp(left=left, right=ast.Constant(value=None)):
                return self.annotated(module, left, cls)
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *_])):
                return self.annotated(module, inner, cls)
            case ast.Subscript(value=outer):
                return self.annotated(module, outer, cls)
        return None

    def _fill(self, made: Class, node: ast.ClassDef) -> None:
        module = made.place[0]
        made.bases = [self._resolved(module, base.id) for base in node.bases if isinstance(base, ast.Name)]
        for inner in node.body:
            if isinstance(inner, FUNCTION):
                made.methods[inner.name] = inner
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                made.fields[inner.target.id] = inner.annotation
        for method in made.methods.values():
            annotations = {one.arg: one.annotation for one in (*method.args.args, *method.args.kwonlyargs)}
            for part in ast.walk(method):
                match part:
                    case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=given):
                        made.fields.setdefault(name, given)
                    case ast.Assign(
                        targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=given)
                    ) if (annotation := annotations.get(given)) is not None:
                        made.fields.setdefault(name, annotation)
                    case ast.Assign(
                        targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                        value=ast.Call(func=ast.Name() as called),
                    ):
                        made.fields.setdefault(name, called)

    def _member(self, place: Known, name: str) -> Known:
        """The class of a field, or of what a method returns."""
        if place is None or place == FOREIGN:
            return place
        for one in self._ancestors(place):
            if (method := self.classes[one].methods.get(name)) is not None:
                return self._returned(method, one)
            if (annotation := self.classes[one].fields.get(name)) is not None:
                return self.annotated(one[0], annotation, one)
        return None

    def _returned(self, function: FUNCTION | None, place: Place) -> Known:
        return None if function is None else self.annotated(place[0], function.returns, place)

    def _of_name(self, module: str, name: str) -> Known:
        """Of a name of the module. A class stands for a value of it: its class methods are found there."""
        place = self._resolved(module, name)
        if place in self.classes:
            return place
        if place[0] not in self._modules or name in self._libraries[module]:
            return FOREIGN
        match self._variables.get(place):
            case ast.AnnAssign(annotation=annotation):
                return self.annotated(place[0], annotation)
            case ast.Assign(value=ast.Call() as value):
                return self.of(place[0], value, {})
        return None

    def module(self, module: str, value: ast.expr) -> str | None:
        """The module that a name stands for."""
        if not isinstance(value, ast.Name) or value.id not in self._imports.get(module, {}):
            return None
        found = ".".join(self._imports[module][value.id])
        return found if found in self._modules else None

    def _resolved(self, module: str, name: str) -> Place:
        """Where a name is defined: packages pass on names of their modules."""
        place, passed = (module, name), set()
        while place not in self.classes and place not in passed:
            passed.add(place)
            place = self._imports.get(place[0], {}).get(place[1], place)
        return place

    def _is_alias(self, place: Place) -> bool:
        """Whether a name of these modules stands for a type that is no class, such as a union."""
        return place[0] in self._modules

    def _ancestors(self, place: Place) -> Iterator[Place]:
        if place in self.classes:
            yield place
            for base in self.classes[place].bases:
                yield from self._ancestors(base)

    def _family(self, place: Place) -> list[Place]:
        if place not in self._families:
            above = list(dict.fromkeys(self._ancestors(place)))
            below = [one for one in self.classes if one not in above and place in self._ancestors(one)]
            self._families[place] = [*above, *below]
        return self._families[place]


def _names(node: ast.stmt) -> list[str]:
    """The variable that a statement of a module makes."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _libraries(tree: ast.Module) -> Iterator[str]:
    """The names of libraries that a module imports whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that are assigned to, with the value if it is known."""
    for inner in ast.walk(node):
        match inner:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Tuple(elts=values)) if len(elements) == len(
                values
            ):
                pairs = zip(elements, values, strict=True)
                yield from ((element.id, value) for element, value in pairs if isinstance(element, ast.Name))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.withitem(optional_vars=ast.Name(id=name)):
                yield name, None
            case ast.For(target=target) | ast.comprehension(target=target) | ast.Assign(targets=[target]):
                yield from ((one.id, None) for one in ast.walk(target) if isinstance(one, ast.Name))
