"""The generated part of `docs/architecture.md`: the layers that lint checks, and what each package says of itself."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.generator import ROOT
from docs.generator.op_codes import parsed

TOPS = ("workbench", "kernel_ext")


def structure() -> str:
    """The layers, the packages, and the modules that are in none."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    ordered = [_layers(contract) for contract in configured if contract["type"] == "layers"]
    tops = [module for top in TOPS for module in sorted((ROOT / top).glob("*.py")) if module.stem != "__init__"]
    return "\n\n".join(
        [
            "## Layers",
            "A line may import from those below it; what stands in one line does not import each other.",
            *ordered,
            "## Packages",
            _table("package", ((f"{_path(place)}/", place / "__init__.py") for place in packages())),
            "## Modules that are in no package of their own",
            _table("module", ((_path(module), module) for module in tops)),
        ]
    )


def packages() -> Iterator[Path]:
    """The directories of the code's packages, in the order of their names."""
    for top in TOPS:
        yield from (module.parent for module in sorted((ROOT / top).rglob("__init__.py")))


def _layers(contract: Mapping[str, Any]) -> str:
    """The layers of a contract of import-linter, which are named within its container if it has one."""
    place = "".join(f"{container.replace('.', '/')}/" for container in contract.get("containers", ()))
    named = [[_of_layer(place, name) for name in layer.split(" | ")] for layer in contract["layers"]]
    return "\n".join(f"{number}. {', '.join(f'`{path}`' for path in line)}" for number, line in enumerate(named, 1))


def _of_layer(place: str, name: str) -> str:
    path = place + name.replace(".", "/")
    return f"{path}/" if (ROOT / path).is_dir() else f"{path}.py"


def _table(head: str, rows: Iterable[tuple[str, Path]]) -> str:
    lines = [f"| [`{path}`](../{path}) | {_summary(module)} |" for path, module in rows]
    return "\n".join([f"| {head} | what it is |", "|---|---|", *lines])


def _summary(module: Path) -> str:
    """The first paragraph of its docstring."""
    text = (ast.get_docstring(parsed(module)) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _path(of: Path) -> str:
    return of.relative_to(ROOT).as_posix()
