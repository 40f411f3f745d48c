"""Pure rules about tools: their names, their schemas, what is shown of their arguments and results."""
