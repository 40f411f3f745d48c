"""The results of operations fit their declared schemas, for any values of the declared types."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from pydantic import BaseModel
from rid_lib.types import KoiNetNode

from workbench.model import Json, Micros
from workbench.ops import Op, collect
from workbench.rules.chat.limits import ConversationLimits
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.model import DefinitionMetadata, ExportedTool, ModelSettings, PromptEntry, Skill
from workbench.rules.personalities.profile import PersonalityProfile, PersonalityTrait
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services import SERVICES
from workbench.services.processes.processes import ResourceLimits
from workbench.services.spawning.elsewhere import MachineFacts

RETURNED = {get_type_hints(op.fn)["return"]: op for op in collect(SERVICES).values()}
"""What operations return, each type once, with one of the operations that return it."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(), below, max_size=2),
    max_leaves=4,
)
SERVERS = [StdioServer(command="uvx", args=["mcp"]), HttpServer(url="https://mcp.example")]
TRAITS = [PersonalityTrait.from_value("mood", "calm"), PersonalityTrait(name="add", is_callable=True)]
PARTS: dict[Any, list[Any]] = {
    PromptEntry: [PromptEntry(name="brief", text="Be brief.")],
    DefinitionMetadata: [
        DefinitionMetadata(id="a", name="A"),
        DefinitionMetadata(id="b", name="B", skills=[Skill(id="s", name="S")], persona="tester"),
    ],
    ModelSettings: [ModelSettings(), ModelSettings.model_validate({"model": "test:one", "own": [1]})],
    ExportedTool: [ExportedTool(name="sum", parameters={"type": "object"}, prompt="Add.")],
    StdioServer | HttpServer: SERVERS,
    PersonalityTrait: TRAITS,
    MachineFacts: [
        MachineFacts(),
        MachineFacts(git="2.53", cores=8, memory_bytes=0, devices=["gpu"], namespaces=False),
    ],
    PersonalityProfile: [
        PersonalityProfile(rid=AgentPersonality("ada", "1"), node_rid=KoiNetNode("lab", "0" * 64), traits=TRAITS)
    ],
}
"""Parts of definitions, profiles and machines, whose fields have formats or bounds."""
TIMES = st.integers(0, 2**52)


def values(declared: Any) -> st.SearchStrategy[Any]:
    """Values of a type that an operation declares."""
    if declared in (Any, Json):
        return JSON
    if declared == Micros:
        return TIMES
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return values(parts[0])
    if origin is list:
        return st.lists(values(parts[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(values(parts[0]), values(parts[1]), max_size=2)
    if declared in (ResourceLimits, ConversationLimits):  # their numbers have bounds
        return st.just(declared())
    if declared in PARTS:
        return st.sampled_from(PARTS[declared])
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return st.deferred(lambda: instances(declared))
    if origin in (Union, UnionType):
        return st.one_of(*map(values, parts))
    return st.from_type(declared)


def instances(model: type[BaseModel]) -> st.SearchStrategy[BaseModel]:
    """Instances of a model, which are not validated."""
    hints = get_type_hints(model, include_extras=True)
    fields = {name: values(hints[name]) for name in model.model_fields}
    return st.fixed_dictionaries(fields).map(lambda made: model.model_construct(**made))


def test_every_result_of_an_operation_fits_its_output_schema() -> None:
    failures = {}
    for returned, op in RETURNED.items():
        try:
            check(returned, op)
        except ValidationError as error:
            failures[returned.__name__] = f"{error.message} {error.__notes__}"
    assert failures == {}


def check(returned: type[BaseModel], op: Op) -> None:
    """Validate examples of what an operation returns."""
    validator = Draft202012Validator(op.output_schema)

    @settings(max_examples=4)
    @given(instances(returned))
    def example(result: BaseModel) -> None:
        validator.validate(op.result.serializer.to_python(result, mode="json"))

    example()
