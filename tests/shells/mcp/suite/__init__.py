"""Tools, prompts and resources of fixed names that the conformance suite of the MCP project calls."""
