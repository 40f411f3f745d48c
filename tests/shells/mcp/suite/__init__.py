"""What the conformance suite of the MCP project calls on a server: tools, prompts and resources of fixed names."""
