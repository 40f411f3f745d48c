"""What a notebook records as metrics and parameters, as JSON."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import index
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any
from uuid import UUID

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


def parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a run as JSON; numbers that JSON has not are text.

    Raises:
        BadInput: ``NOT_A_PARAMETER``.
    """
    return {name: _spelled(parameter(name, value)) for name, value in given.items()}


def parameter(name: str, value: Any) -> Any:
    """A parameter as JSON has it, but for numbers that are not finite: dates, paths and the like are text.

    Raises:
        BadInput: ``NOT_A_PARAMETER``.
    """
    match value := _plain(value):
        case Enum():
            return parameter(name, value.value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): parameter(name, each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset() | range():
            return [parameter(name, each) for each in value]
        case date() | time():
            return value.isoformat()
        case timedelta() | Decimal() | Fraction() | UUID() | PurePath():
            return str(value)
        case Namespace() | SimpleNamespace():
            return parameter(name, vars(value))
    if callable(value) and hasattr(value, "__qualname__"):  # a class or a function
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        return {each.name: parameter(name, getattr(value, each.name)) for each in fields(value)}
    dumped = getattr(value, "model_dump", None)  # of pydantic
    if callable(dumped):
        return parameter(name, dumped())
    raise BadInput(
        "NOT_A_PARAMETER",
        f"{name} is {type(value).__name__}: a parameter is a number, text, date, list, dict or dataclass. Give what "
        f"tells it from others, such as its name or its size.",
    )


def _spelled(value: Any) -> Any:
    match value:
        case dict():
            return {key: _spelled(each) for key, each in value.items()}
        case list():
            return [_spelled(each) for each in value]
    return spelled(value) if isinstance(value, float) else value


def _plain(value: Any) -> Any:
    """A value of NumPy, PyTorch, pandas and the like as one of Python."""
    if isinstance(value, str | bool | int | float | list | tuple):
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):  # as numbers, dates would be nanoseconds
        value = value.astype(str)
    convert = getattr(value, "tolist", None) or getattr(value, "item", None)
    return convert() if callable(convert) and not isinstance(value, type) else value


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
