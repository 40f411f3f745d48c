"""Files of other programs, as people have them, and what they are as definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OtherFile:
    """A file of another program.

    Args:
        says: sections of the definition; metadata without the id.
        left_out: the beginnings of what is named as lost, in order.
        back: the form in which the definition is exported again, equal in all that this says.
    """

    form: str
    path: str
    text: str
    name: str
    says: dict[str, Any]
    left_out: list[str] = field(default_factory=list)
    back: str | None = None


SUBAGENT = """\
---
name: code-reviewer
description: Expert code review specialist. Use proactively: after every change. Example: <example>x: "done"</example>
tools: Read, Grep, Glob, Bash(git diff:*), mcp__github__get_pull_request
disallowedTools: WebFetch
model: sonnet
permissionMode: plan
maxTurns: 12
color: purple
skills: pdf-forms
mcpServers:
  - github:
      type: stdio
      command: npx
      args: ["-y", "@modelcontextprotocol/server-github"]
      env:
        GITHUB_PERSONAL_ACCESS_TOKEN: ${GITHUB_TOKEN}
  - sentry
---

You are a senior code reviewer.

1. Run `git diff`.
2. Name the file and the line of each finding.
"""
SKILL = """\
---
name: pdf-forms
description: Fill PDF forms. Use when the user has a PDF with fields.
license: Apache-2.0
allowed-tools: Bash(python3:*) Read
metadata:
  version: 1.2.0
  author: lab
---

# PDF forms

Run [the script](scripts/fill.py), then see [the fields](references/fields.md).
"""
AGENTS = """\
# AGENTS.md

## Setup
- `pnpm install`, then `pnpm test`

## Style
- Strict TypeScript; no `any`.
"""
CLAUDE = """\
# Project

See @docs/architecture.md for the layout. Write to me@lab.org.

- Run `make test` before a commit.
"""
CURSOR = """\
---
description: Conventions of React components
globs: src/**/*.tsx,*.ts
alwaysApply: false
---

- Components are functions.
"""
CURSOR_ALWAYS = """\
---
description:
globs:
alwaysApply: true
---

Answer in English.
"""
CURSOR_RULES = "You are an expert in Python.\nPrefer `pathlib`.\n"
MCP = """\
{
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": {"Authorization": "Bearer ${GITHUB_PAT}"}
    },
    "db": {
      "command": "${HOME}/bin/db",
      "args": ["--dsn", "${DSN:-sqlite:///x.db}", "--root=${CLAUDE_PROJECT_DIR:-.}"],
      "env": {"LEVEL": "info", "RETRIES": 3}
    },
    "old": {"command": "old", "disabled": true},
    "socket": {"type": "ws", "url": "wss://x.example/mcp"},
    "workbench": {"url": "http://127.0.0.1:9/mcp"}
  }
}
"""
VSCODE = """\
{
  // Servers of this workspace.
  "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "API key", "password": true}],
  "servers": {
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask"],
      "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"},
      "envFile": "${workspaceFolder}/.env",
    },
    "fetch": {"type": "http", "url": "https://fetch.example/mcp?key=${env:FETCH_KEY}"},
  },
}
"""
GEMINI = """\
{
  "general": {"defaultApprovalMode": "plan", "vimMode": true},
  "model": {"name": "gemini-2.5-pro", "maxSessionTurns": 30},
  "tools": {"core": ["read_file", "ReadManyFilesTool", "run_shell_command(git log)"], "exclude": ["web_fetch"]},
  "mcp": {"excluded": ["off"]},
  "mcpServers": {
    "files": {"command": "files", "args": ["--key", "$FILES_KEY"], "includeTools": ["list", "get"], "trust": true},
    "web": {"httpUrl": "https://web.example/mcp", "timeout": 5000, "excludeTools": ["post"]},
    "events": {"url": "https://events.example/sse"},
    "off": {"command": "off"}
  },
  "telemetry": {"enabled": false}
}
"""
CODEX = """\
model = "gpt-5-codex"
model_provider = "lab"
model_reasoning_effort = "high"
approval_policy = "on-request"
sandbox_mode = "read-only"

[model_providers.lab]
name = "Lab"
base_url = "https://models.lab.example/v1"
env_key = "LAB_KEY"
wire_api = "responses"

[mcp_servers.docs]
command = "docs-server"
args = ["--port", "4000"]
env_vars = ["DOCS_TOKEN"]
enabled_tools = ["search"]
startup_timeout_sec = 20

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "eu" }

[mcp_servers.off]
command = "off"
enabled = false
"""
TSAGENT = """\
metadata:
  name: Researcher
  description: Reads papers
  supervisors: [boss]
systemPrompt: You read papers.
settings:
  model: "claude:claude-sonnet-5"
rules:
  - name: cite
    text: Cite what you read.
    include: always
    embeddings: [1, 2]
mcpServers:
  internal-rules: {type: internal}
  papers: {command: papers, env: {KEY: "${PAPERS_KEY}"}}
"""
TSAGENT_JSON = """\
{"metadata": {"name": "Helper", "version": "2.0.0"}, "settings": {"temperature": "0.3"},
 "mcpServers": {"papers": {"type": "stdio", "command": "papers"}}}
"""
MDT = '---\n{"name": "polite", "priorityLevel": 10, "include": "always"}\n---\nBe polite.\n'

OFFERED = {"include": "always"}
WITHHELD = {"include": "manual"}
FILES = [
    OtherFile(
        "claude-subagent",
        ".claude/agents/code-reviewer.md",
        SUBAGENT,
        "code-reviewer",
        {
            "metadata": {
                "description": "Expert code review specialist. Use proactively: after every change. "
                'Example: <example>x: "done"</example>',
                "mode": "autonomous",
            },
            "settings": {
                "model": "anthropic:sonnet",
                "maxChatTurns": 12,
                "allowedTools": ["Read", "Grep", "Glob", "Bash(git diff:*)"],
                "disallowedTools": ["WebFetch"],
                "permissionMode": "plan",
            },
            "prompt": "You are a senior code reviewer.\n\n"
            "1. Run `git diff`.\n2. Name the file and the line of each finding.",
            "mcpServers": {
                "github": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-github"],
                    "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "env://GITHUB_TOKEN"},
                    "serverToolDefaults": WITHHELD,
                    "tools": {"get_pull_request": OFFERED},
                }
            },
        },
        ["mcpServers.sentry: it is configured in another file", "skills.pdf-forms: it is another file", "color"],
        "claude-subagent",
    ),
    OtherFile(
        "skill",
        "pdf-forms/SKILL.md",
        SKILL,
        "pdf-forms",
        {
            "metadata": {
                "description": "Fill PDF forms. Use when the user has a PDF with fields.",
                "version": "1.2.0",
            },
            "rules": [
                {
                    "name": "pdf-forms",
                    "description": "Fill PDF forms. Use when the user has a PDF with fields.",
                    "include": "agent",
                    "text": "# PDF forms\n\nRun [the script](scripts/fill.py), then see "
                    "[the fields](references/fields.md).",
                }
            ],
        },
        [
            "allowed-tools: it permits tools without a question; it limits none",
            "metadata.author",
            "license",
            "scripts/fill.py: ",
            "references/fields.md: ",
        ],
        "skill",
    ),
    OtherFile(
        "agents-md",
        "repo/AGENTS.md",
        AGENTS,
        "AGENTS",
        {"rules": [{"name": "AGENTS", "include": "always", "text": AGENTS.strip()}]},
    ),
    OtherFile(
        "claude-md",
        "repo/CLAUDE.md",
        CLAUDE,
        "CLAUDE",
        {"rules": [{"name": "CLAUDE", "include": "always", "text": CLAUDE.strip()}]},
        ["docs/architecture.md: the text names this file"],
    ),
    OtherFile(
        "cursor-rule",
        "rules/react.mdc",
        CURSOR,
        "react",
        {
            "metadata": {"description": "Conventions of React components"},
            "rules": [
                {
                    "name": "react",
                    "description": "Conventions of React components",
                    "include": "agent",
                    "text": "- Components are functions.",
                }
            ],
        },
        ["globs: src/**/*.tsx,*.ts: the agent reads the rule when it needs it"],
    ),
    OtherFile(
        "cursor-rule",
        "rules/english.mdc",
        CURSOR_ALWAYS,
        "english",
        {"rules": [{"name": "english", "include": "always", "text": "Answer in English."}]},
    ),
    OtherFile(
        "cursorrules",
        "repo/.cursorrules",
        CURSOR_RULES,
        "cursorrules",
        {"rules": [{"name": "cursorrules", "include": "always", "text": CURSOR_RULES.strip()}]},
    ),
    OtherFile(
        "mcp-json",
        "repo/.mcp.json",
        MCP,
        "mcp",
        {
            "mcpServers": {
                "github": {
                    "url": "https://api.githubcopilot.com/mcp/",
                    "headers": {"Authorization": "Bearer env://GITHUB_PAT"},
                },
                "db": {
                    "command": "${HOME}/bin/db",
                    "args": ["--dsn", "env://DSN", "--root=."],
                    "env": {"LEVEL": "info", "RETRIES": "3"},
                },
            }
        },
        [
            "mcpServers.db.args: the default value of DSN",
            "mcpServers.db.command: ${HOME} is not replaced",
            "mcpServers.old: it is switched off there",
            "mcpServers.socket: ",
            "mcpServers.workbench: every agent has Workbench's own server",
        ],
    ),
    OtherFile(
        "vscode-mcp",
        ".vscode/mcp.json",
        VSCODE,
        "mcp",
        {
            "mcpServers": {
                "perplexity": {
                    "command": "npx",
                    "args": ["-y", "server-perplexity-ask"],
                    "env": {"PERPLEXITY_API_KEY": "env://PERPLEXITY_KEY"},
                },
                "fetch": {"url": "https://fetch.example/mcp?key=env://FETCH_KEY"},
            }
        },
        ["servers.perplexity.envFile", "inputs.perplexity-key: nothing asks for it"],
    ),
    OtherFile(
        "gemini-settings",
        ".gemini/settings.json",
        GEMINI,
        "settings",
        {
            "settings": {
                "model": "gemini:gemini-2.5-pro",
                "maxChatTurns": 30,
                "allowedTools": ["Read", "Bash(git log:*)"],
                "disallowedTools": ["WebFetch"],
                "permissionMode": "plan",
            },
            "mcpServers": {
                "files": {
                    "command": "files",
                    "args": ["--key", "env://FILES_KEY"],
                    "serverToolDefaults": WITHHELD | {"permissionRequired": False},
                    "tools": {"list": OFFERED, "get": OFFERED},
                },
                "web": {"url": "https://web.example/mcp", "tools": {"post": WITHHELD}},
                "events": {"type": "sse", "url": "https://events.example/sse"},
            },
        },
        ["mcpServers.off: it is switched off there", "mcpServers.web.timeout", "general.vimMode", "telemetry"],
    ),
    OtherFile(
        "codex-config",
        ".codex/config.toml",
        CODEX,
        "config",
        {
            "settings": {"model": "openai:gpt-5-codex", "permissionMode": "plan"},
            "providers": {
                "openai": {"OPENAI_BASE_URL": "https://models.lab.example/v1", "OPENAI_API_KEY": "env://LAB_KEY"}
            },
            "mcpServers": {
                "docs": {
                    "command": "docs-server",
                    "args": ["--port", "4000"],
                    "env": {"DOCS_TOKEN": "env://DOCS_TOKEN"},
                    "serverToolDefaults": WITHHELD,
                    "tools": {"search": OFFERED},
                },
                "figma": {
                    "url": "https://mcp.figma.com/mcp",
                    "headers": {"X-Region": "eu", "Authorization": "Bearer env://FIGMA_TOKEN"},
                },
            },
        },
        [
            "mcp_servers.docs.startup_timeout_sec",
            "mcp_servers.off: it is switched off there",
            "model_reasoning_effort",
            "approval_policy",
        ],
    ),
    OtherFile(
        "tsagent",
        "agents/researcher.yaml",
        TSAGENT,
        "Researcher",
        {
            "metadata": {"description": "Reads papers"},
            "prompt": "You read papers.",
            "settings": {"model": "anthropic:claude-sonnet-5"},
            "rules": [{"name": "cite", "text": "Cite what you read.", "include": "always"}],
            "mcpServers": {"papers": {"command": "papers", "env": {"KEY": "env://PAPERS_KEY"}}},
        },
        ["metadata.supervisors", "mcpServers.internal-rules"],
        "workbench",
    ),
    OtherFile(
        "tsagent",
        "helper/tsagent.json",
        TSAGENT_JSON,
        "Helper",
        {
            "metadata": {"version": "2.0.0"},
            "settings": {"temperature": 0.3},
            "mcpServers": {"papers": {"command": "papers"}},
        },
        ["prompt.md, rules/*.mdt, refs/*.mdt"],
        "workbench",
    ),
    OtherFile(
        "tsagent-rule",
        "rules/polite.mdt",
        MDT,
        "polite",
        {"rules": [{"name": "polite", "priorityLevel": 10, "include": "always", "text": "Be polite."}]},
    ),
]
