"""The engine of conversations: a model of a provider, with tools. Knows no service; pydantic-ai is known here only."""
