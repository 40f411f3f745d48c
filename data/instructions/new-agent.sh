# 1. Register the agent. The reply has its token, which is shown only this once.
workbench --project /path/to/project call register name=my-agent persona_id=implementer
# 2. Admit it, with a worktree of its own. For an agent that changes no files, leave the worktree out.
workbench --project /path/to/project worktrees create my-agent
workbench --project /path/to/project approve my-agent --worktree my-agent
# 3. Set its token, and go to its worktree: its work belongs there, and nothing outside of it may change.
export WORKBENCH_TOKEN=wba_…your-token…
cd /path/to/project/.aiswarm/worktrees/my-agent
