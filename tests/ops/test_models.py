"""Models are built when they are first used, so a mistake in one would be found late."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from workbench import app


def deferred(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in model.__subclasses__():
        if one.__module__.startswith(f"{app.__package__}.") and one.model_config.get("defer_build"):
            yield one
        yield from deferred(one)


def test_every_model_can_be_built() -> None:
    for model in {*deferred(BaseModel)}:
        model.model_rebuild()
        assert model.__pydantic_complete__, model
