"""Types of parameters that many operations take. Their descriptions tell an agent where it finds a value.

Alone: operations of every noun take them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model import Int64

AgentId = Annotated[str, Field(description="The agent's id; see list_agents.")]
ApprovalId = Annotated[Int64, Field(description="The approval_id that the request for it returned.")]
ContextId = Annotated[str, Field(description="The context's id, as read and write return it.")]
PersonaId = Annotated[str, Field(description="The persona's id, such as implementer; see get_personas.")]
TaskId = Annotated[Int64, Field(description="The task's id; see list_tasks.")]
