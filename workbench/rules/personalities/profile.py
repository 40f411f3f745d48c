"""The profile of an agent: the contents of an `AgentPersonality` bundle (spec 5, 4.2 and 4.3)."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field
from rid_lib.types import KoiNetNode

from workbench.model import Json
from workbench.rules.personalities.rid import AgentPersonality, of_type

MOST_TRAITS = 1_000


class PersonalityTrait(BaseModel):
    """One attribute or tool of an agent.

    The fields from `input_schema` on are Workbench's own; other implementations leave them out.

    Args:
        type: the name of the Python type of `value`.
        is_callable: it is a tool.
        input_schema: JSON Schema of the arguments; None: any object.
        output_schema: JSON Schema of the structured result, if that is known.
        read_only: calling it changes nothing.
        version: changes when the function behind it does.
    """

    model_config = ConfigDict(extra="ignore")

    name: str = Field(min_length=1, max_length=128)
    description: str = Field("", max_length=8_000)
    type: str = Field("str", max_length=128)
    value: Json = None
    is_callable: bool = False
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    version: str | None = None

    @classmethod
    def from_value(cls, name: str, value: Any, description: str | None = None, *, is_callable: bool = False) -> Self:
        """A trait of a value; the type is that of the value."""
        described = description if description is not None else f"{name} trait"
        return cls(name=name, description=described, type=type(value).__name__, value=value, is_callable=is_callable)


class PersonalityProfile(BaseModel):
    """What an agent tells the network about itself.

    Args:
        node_rid: the node that the agent belongs to; only it may change the profile.
        base_url: of the KOI-net endpoints of that node.
        mcp_url: of the agent's own endpoints, such as ``<mcp_url>/tools/call/<trait>``.
    """

    model_config = ConfigDict(extra="ignore")

    rid: Annotated[AgentPersonality, of_type(AgentPersonality)]
    node_rid: Annotated[KoiNetNode, of_type(KoiNetNode)]
    base_url: str | None = Field(None, max_length=2_000)
    mcp_url: str | None = Field(None, max_length=2_000)
    traits: list[PersonalityTrait] = Field([], max_length=MOST_TRAITS)

    @property
    def tools(self) -> list[PersonalityTrait]:
        """The traits that can be called."""
        return [trait for trait in self.traits if trait.is_callable]

    def get_trait(self, name: str) -> PersonalityTrait | None:
        """The trait with a name."""
        return next((trait for trait in self.traits if trait.name == name), None)

    def update_trait(self, name: str, value: Any) -> bool:
        """Change the value of a trait, and its type accordingly; False if there is none with this name."""
        trait = self.get_trait(name)
        if trait is None:
            return False
        trait.value, trait.type = value, type(value).__name__
        return True

    def add_trait(self, trait: PersonalityTrait) -> None:
        """Append a trait."""
        self.traits.append(trait)
