"""The profile of an agent, from what is known about it: its definition, its persona, its traits and its functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rid_lib.types import KoiNetNode

from workbench.rules.definitions.model import DefinitionMetadata
from workbench.rules.personalities.profile import PersonalityProfile, PersonalityTrait
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.personalities.traits import require_room


@dataclass(frozen=True, slots=True)
class Home:
    """Where the profiles of a node belong.

    Args:
        server_url: ``http://host:port``, without a path.
    """

    node: KoiNetNode
    server_url: str

    def profile(self, name: str, version: str, traits: list[PersonalityTrait]) -> PersonalityProfile:
        """A profile of this node, with the addresses at which it answers."""
        return PersonalityProfile(
            rid=AgentPersonality(name, version),
            node_rid=self.node,
            base_url=f"{self.server_url}/koi-net",
            mcp_url=f"{self.server_url}/agents/{quote(name, safe='')}",
            traits=traits,
        )


@dataclass(frozen=True, slots=True)
class Sources:
    """What the traits of an agent are made from.

    Args:
        definition: what its definition says about itself; its prompt, rules and secrets are not published.
        persona: the name of its persona, and the role.
        by_hand: the traits that were set by hand.
        functions: its callable traits.
    """

    definition: DefinitionMetadata | None = None
    persona: tuple[str, str] | None = None
    by_hand: Iterable[PersonalityTrait] = ()
    functions: Iterable[PersonalityTrait] = ()


def compose(sources: Sources) -> list[PersonalityTrait]:
    """The traits of an agent, by name: a function comes before a trait set by hand, and that before all others.

    Raises:
        BadInput: ``TOO_MANY_TRAITS``, ``TRAITS_TOO_LARGE``.
    """
    found = {trait.name: trait for trait in (*_of_definition(sources.definition), *_of_persona(sources.persona))}
    found |= {trait.name: trait for trait in sources.by_hand}
    found |= {trait.name: trait for trait in sources.functions}
    traits = [found[name] for name in sorted(found)]
    require_room(traits)
    return traits


def function_trait(
    name: str,
    description: str,
    parameters: dict[str, Any],
    result: dict[str, Any] | None,
    *,
    read_only: bool = False,
    version: str | None = None,
) -> PersonalityTrait:
    """The callable trait of a function; `parameters` and `result` are JSON Schemas."""
    return PersonalityTrait(
        name=name,
        description=description[:8_000],
        type="function",
        is_callable=True,
        input_schema=parameters,
        output_schema=result,
        read_only=read_only,
        version=version,
    )


def _of_definition(metadata: DefinitionMetadata | None) -> Iterator[PersonalityTrait]:
    if metadata is None:
        return
    if metadata.description:
        yield PersonalityTrait.from_value("description", metadata.description, "What the agent is for")
    yield PersonalityTrait.from_value("mode", metadata.mode.value, "How the agent is used")
    if metadata.skills:
        skills = [skill.model_dump(mode="json") for skill in metadata.skills]
        yield PersonalityTrait.from_value("skills", skills, "What the agent is good at")


def _of_persona(persona: tuple[str, str] | None) -> Iterator[PersonalityTrait]:
    if persona is not None:
        name, role = persona
        yield PersonalityTrait.from_value("persona", name, "The work the agent takes")
        yield PersonalityTrait.from_value("role", role, "Whether the agent takes tasks, or also creates them")
