"""Turns the metrics and parameters that a notebook records into JSON."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

from workbench.errors import BadInput
from workbench.rules.plain import NotPlain, Plain, is_frame, native
from workbench.rules.runs.values import LONGEST_TEXT, spelled


def metric(name: str, value: Any) -> Any:
    """A value of a metric as `record_metrics` takes it: numbers of every library, texts, and sequences of both.

    Raises:
        BadInput: ``NOT_A_METRIC``.
    """
    if is_frame(value):
        raise _not_a_metric(name, type(value).__name__)
    plain = native(value)
    values = plain if isinstance(plain, list | tuple) else [plain]
    metric_values = [_as_metric(name, item) for item in values]
    return metric_values if values is plain else metric_values[0]


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


class _Parameter(Plain):
    """A parameter tells a run from others: classes and functions are their names, and no tables or bytes are taken."""

    def binary(self, value: bytes) -> Any:
        """Bytes."""
        raise self.refused(value)

    def frame(self, value: Any) -> Any:
        """A table."""
        raise self.refused(value)

    def other(self, value: Any) -> Any:
        """A class or a function."""
        if callable(value) and hasattr(value, "__qualname__"):
            return f"{value.__module__}.{value.__qualname__}"
        raise self.refused(value)

    def refused(self, value: Any, why: str = "") -> NotPlain:
        """The error for a value."""
        advice = "a parameter is a number, text, date, list, dict or dataclass. Give what tells it from others"
        return super().refused(value, f"{advice}, such as its name or its size")


class _Swept(_Parameter):
    """A parameter whose numbers may be any."""

    def not_finite(self, value: float) -> Any:
        """NaN or an infinity."""
        return value


def parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a run as JSON; numbers that JSON does not have become text.

    Raises:
        BadInput: ``NOT_A_PARAMETER``.
    """
    return {name: _as_parameter(_Parameter(), name, value) for name, value in given.items()}


def parameter(name: str, value: Any) -> Any:
    """A parameter as JSON, except for numbers that are not finite; dates, paths and the like become text.

    Raises:
        BadInput: ``NOT_A_PARAMETER``.
    """
    return _as_parameter(_Swept(), name, value)


def _as_parameter(plain: Plain, name: str, value: Any) -> Any:
    try:
        return plain.of(value, name)
    except NotPlain as error:
        raise BadInput("NOT_A_PARAMETER", f"{error}.") from None


def _as_metric(name: str, value: Any) -> float | str:
    value = native(value)
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
