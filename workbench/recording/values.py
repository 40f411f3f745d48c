"""What a notebook records as metrics and parameters, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

from workbench.errors import BadInput
from workbench.rules.runs.values import LONGEST_TEXT, spelled


def metric(name: str, value: Any) -> Any:
    """A value of a metric as `record_metrics` takes it: numbers of every library, texts, and sequences of both.

    Raises:
        BadInput: ``NOT_A_METRIC``.
    """
    plain = _plain(value)
    values = plain if isinstance(plain, list | tuple) else [plain]
    made = [_one(name, each) for each in values]
    return made if values is plain else made[0]


def metrics(given: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of a call of `record`, which takes them as a dict, by their names, or both.

    Raises:
        BadInput: ``NOT_A_METRIC``.
    """
    if given is not None and not isinstance(given, Mapping):
        text = f'record takes values by name, as in record(loss=0.5) and record({{"val/loss": 0.5}}), not {given!r}.'
        raise BadInput("NOT_A_METRIC", text)
    return {name: metric(name, value) for name, value in {**(given or {}), **more}.items()}


def step(given: Any) -> Any:
    """A step: whole numbers of every library are Python's; `record_metrics` refuses anything else."""
    try:
        return given if given is None else index(given)
    except TypeError:
        return given


def parameter(value: Any) -> Any:
    """A parameter as JSON; what JSON lacks as text."""
    value = _plain(value)
    if isinstance(value, Mapping):
        return {str(key): parameter(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [parameter(each) for each in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return spelled(value) if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """A value of NumPy, PyTorch, pandas and the like as one of Python."""
    if isinstance(value, str | bool | int | float | list | tuple):
        return value
    convert = getattr(value, "tolist", None) or getattr(value, "item", None)
    return convert() if callable(convert) else value


def _one(name: str, value: Any) -> float | str:
    value = _plain(value)
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise _not_a_metric(name, f"a text of {len(value):,} characters")
        return value
    try:
        return spelled(float(value))
    except (TypeError, ValueError, OverflowError):
        raise _not_a_metric(name, type(value).__name__) from None


def _not_a_metric(name: str, what: str) -> BadInput:
    return BadInput(
        "NOT_A_METRIC",
        f"{name} is {what}: record a number, a text of up to 1,000 characters, or a list of them. A file is recorded "
        "with artifact(path).",
    )
