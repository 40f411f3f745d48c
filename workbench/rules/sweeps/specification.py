"""What a sweep runs: a notebook, the values of its parameters, and how often. The same as a YAML file:

```yaml
notebook: experiment.ipynb      # relative to this file
name: night                     # by default the notebook's
parameters:
  seed: 1..50                   # a range
  rate: [0.1, 0.2]              # a list: one run for each
over:
  persona: [terse, thorough]
repeat: 3
workers: 4
timeout: 600                    # seconds of one run
memory: 2 GB                    # of one run with its processes
share: false
dask: tcp://scheduler:8786     # or local
```
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.errors import BadInput
from workbench.rules.naming import similar
from workbench.rules.runs.values import spelled
from workbench.rules.sweeps.values import assignment, bad_parameter, canonical, parse_scalar, parse_values, too_large
from workbench.rules.yaml_text import InvalidYaml, load

OVER = ("persona", "definition")
"""What a sweep goes over besides parameters. The notebook declares them as parameters."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}", re.ASCII)
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB|TB|k|K|M|G|T)?", re.ASCII)
_UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_KEYS = ("notebook", "name", "parameters", "over", "repeat", "workers", "timeout", "memory", "share", "dask")
_MOST_REPEATS = 1_000_000
MOST_WORKERS = 256
LOCAL_CLUSTER = "local"
"""Stands for a Dask cluster of this machine that lasts as long as the sweep."""
_SCHEDULER = re.compile(r"((?:tcp|tls|wss?|ucxx?)://)?[^\s/]+:\d{1,5}", re.ASCII)

Values = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Specification:
    """What a sweep runs.

    Args:
        parameters: the values of each parameter of the notebook.
        over: the personas and definitions, as ids and names.
        repeat: how often each combination runs.
    """

    notebook: str
    parameters: Values = field(default_factory=dict)
    over: Values = field(default_factory=dict)
    repeat: int = 1

    @property
    def recorded(self) -> Specification:
        """The same as records have it: numbers that JSON has not are text; see `notebook.Parameter.received`."""
        values = {
            name: tuple(spelled(one) if isinstance(one, float) else one for one in some)
            for name, some in self.parameters.items()
        }
        return replace(self, parameters=values)

    def __post_init__(self) -> None:
        if both := [name for name in self.parameters if name in self.over]:
            raise bad_parameter(f"{both[0]} is given twice, as a parameter and with over")
        for name, values in {**self.parameters, **self.over}.items():
            _check_distinct(name, values)
        if type(self.repeat) is not int or not 1 <= self.repeat <= _MOST_REPEATS:
            raise bad_parameter(f"repeat is {self.repeat!r}. It is a whole number from 1 to {_MOST_REPEATS:,}")


@dataclass(frozen=True)
class SweepLimits:
    """How a sweep runs.

    Args:
        workers: runs at the same time.
        timeout: seconds that a run may take; None: any time.
        memory: bytes that a run may use, with all its processes; None: any.
    """

    workers: int = 4
    timeout: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MOST_WORKERS:
            raise bad_sweep(f"workers is {self.workers}. It is from 1 to {MOST_WORKERS}")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise bad_sweep(f"timeout is {self.timeout:g}. It is a number of seconds above 0")
        if self.memory is not None and self.memory < 1:
            raise bad_sweep(f"memory is {self.memory}. It is a size, such as 500 MB")


@dataclass(frozen=True)
class SweepFile:
    """A sweep as a file describes it: what it runs, and what of the rest the file says."""

    specification: Specification
    options: Mapping[str, Any]
    """Of `name`, `workers`, `timeout`, `memory`, `share` and `dask` those that the file has."""


def typed(texts: Sequence[str], largest: int) -> Values:
    """The values of parameters as they are typed: `["seed=1..3", "rate=0.1,0.2"]`.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        name, values = assignment(text)
        if name in found:
            raise bad_parameter(f"{name} is given twice. Separate its values by commas")
        found[name] = parse_values(name, values, largest)
    return found


def typed_over(texts: Sequence[str], largest: int) -> Values:
    """The same for what a sweep goes over besides parameters, whose values are names.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    return _over({name: tuple(map(str, values)) for name, values in typed(texts, largest).items()})


def from_values(values: Mapping[str, Any], largest: int) -> Values:
    """The values of parameters from a program or a YAML file: a list has one for each run, a text may be a range.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise bad_parameter(f"{name!r} is not the name of a parameter")
        if isinstance(value, range) and len(value) > largest:
            raise too_large(len(value), largest)
        several = isinstance(value, Sequence | range) and not isinstance(value, str | bytes)
        found[name] = tuple(value) if several else parse_scalar(name, value, largest)
        if not found[name]:
            raise bad_parameter(f"{name} lacks a value")
    return found


def from_names(values: Mapping[str, Any], largest: int) -> Values:
    """The same for what a sweep goes over besides parameters.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    return _over({name: tuple(map(str, found)) for name, found in from_values(values, largest).items()})


def from_yaml(text: str, largest: int) -> SweepFile:
    """Read the YAML form; see the module.

    Raises:
        BadInput: ``BAD_SWEEP``, ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    try:
        document = load(text)
    except InvalidYaml as error:
        where = "" if error.line is None else f" in line {error.line}"
        raise bad_sweep(f"This is not YAML{where}: {error}") from None
    if not isinstance(document, dict):
        raise bad_sweep("A sweep is a mapping with at least `notebook: FILE.ipynb`")
    for key in document:
        if key not in _KEYS:
            meant = similar(str(key), _KEYS)
            hint = f"Did you mean {meant}?" if meant else f"It has {', '.join(_KEYS)}"
            raise bad_sweep(f"A sweep has no key {key!r}. {hint}")
    notebook, parts = document.get("notebook"), (document.get("parameters") or {}, document.get("over") or {})
    if not isinstance(notebook, str) or not all(isinstance(part, dict) for part in parts):
        raise bad_sweep("`notebook` is a path; `parameters` and `over` are mappings of names to values")
    repeat = document.get("repeat", 1)
    if type(repeat) is not int:
        raise bad_sweep(f"repeat is {repeat!r}. It is a whole number")
    options = check_options({name: document.get(name) for name in _OPTIONS})
    specification = Specification(notebook, from_values(parts[0], largest), from_names(parts[1], largest), repeat)
    return SweepFile(specification, options)


_OPTIONS: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "workers": (int,),
    "timeout": (int, float),
    "memory": (int, float, str),
    "share": (bool,),
    "dask": (str,),
    "kernel": (str,),
}
_WANTED: Mapping[str, str] = {
    "name": "takes a text",
    "workers": "takes a whole number",
    "timeout": "takes a number of seconds, such as 600",
    "memory": "takes a size, such as 2 GB",
    "share": "takes true or false",
    "dask": "takes local, the name of a machine, or the address of a scheduler",
    "kernel": "takes the name of a kernel, such as python3",
}


def check_options(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a sweep runs, as it was said in a file or in Python: of `_OPTIONS` those that are not None.

    Raises:
        BadInput: ``BAD_SWEEP``.
    """
    for name in values:
        if name not in _OPTIONS:
            meant = similar(name, _OPTIONS)
            hint = f"Did you mean {meant}?" if meant else f"Its options are {', '.join(_OPTIONS)}"
            raise bad_sweep(
                f"A sweep has no option {name}. Values of the notebook's parameters go into parameters. {hint}"
            )
    return {name: _option(name, value) for name, value in values.items() if value is not None}


def _option(name: str, value: Any) -> Any:
    if type(value) not in _OPTIONS[name]:
        raise bad_sweep(f"{name} is {value!r}. It {_WANTED[name]}")
    return parse_size(str(value)) if name == "memory" else value


def check_dask(text: str, machines: Collection[str] = ()) -> str:
    """Where a sweep runs with Dask: `LOCAL_CLUSTER`, or the address of a scheduler.

    Args:
        machines: the names that the settings know, for the message.

    Raises:
        BadInput: ``BAD_SWEEP``.
    """
    if text != LOCAL_CLUSTER and _SCHEDULER.fullmatch(text) is None:
        named = f" (here: {', '.join(sorted(machines))})" if machines else ""
        raise bad_sweep(
            f"dask is {text!r}. It is local, a name in the setting machines{named}, or the address of a scheduler, "
            "such as tcp://host:8786; others begin with tls://, ws:// or wss://"
        )
    return text


def parse_size(text: str) -> int:
    """A number of bytes: `2 GB`, `500M`, `1000000`.

    Raises:
        BadInput: ``BAD_SWEEP``.
    """
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        raise bad_sweep(f"{text!r} is not a size, such as 500 MB or 2 GB")
    return int(float(found[1]) * _UNITS[(found[2] or "").upper().removesuffix("B") if found[2] else ""])


def check_name(name: str) -> str:
    """The name of a sweep, which is also that of its directory.

    Raises:
        BadInput: ``BAD_NAME``.
    """
    if NAME.fullmatch(name) is None:
        raise BadInput(
            "BAD_NAME",
            f"{name!r} cannot name a sweep. Use up to 50 of a-z, 0-9, - and _, and begin with a letter or digit.",
        )
    return name


def default_name(notebook: str) -> str:
    """The name of a sweep of this notebook, unless it is given another one."""
    stem = notebook.replace("\\", "/").rpartition("/")[2].removesuffix(".ipynb").lower()
    return re.sub(r"[^a-z0-9_-]+", "-", stem).strip("-_")[:50].rstrip("-_") or "sweep"


def bad_sweep(what: str) -> BadInput:
    """The error for a sweep that cannot be understood."""
    return BadInput("BAD_SWEEP", f"{what.strip()}{'' if what.rstrip().endswith('?') else '.'}")


def _over(values: Values) -> Values:
    for name in values:
        if name not in OVER:
            raise bad_parameter(f"{name!r} is neither persona nor definition. Give parameters with -p {name}=VALUES")
    return values


def _canonical(name: str, value: Any) -> str:
    try:
        return canonical(spelled(value) if isinstance(value, float) else value)
    except BadInput:
        hint = "Give a number, a text, true, false, null, a list or a mapping"
        raise bad_parameter(f"{name} has the value {value}, which JSON has not. {hint}") from None


def _check_distinct(name: str, values: Sequence[Any]) -> None:
    seen = [_canonical(name, value) for value in values]
    if len({*seen}) < len(seen):
        twice = next(text for text in seen if seen.count(text) > 1)
        raise bad_parameter(f"{name} has the value {twice} twice. To repeat runs, use --repeat")
