"""What participants tell each other: messages to agents, comments on tasks, and questions of agents to the person.

- `inbox`: each agent's one inbox, and the three receipts of a message: queued, seen, acted
- `questions`: what agents ask the person, and the answers
"""

from workbench.services.messages import inbox, questions

__all__ = ["inbox", "questions"]
