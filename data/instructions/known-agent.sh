# 1. Issue a new token for the agent; the old one stops working. It is shown only this once.
workbench --project /path/to/project token my-agent
# 2. Give it a worktree, unless it has one, and admit no changes outside of it.
#      workbench --project /path/to/project worktrees create NAME
#      workbench --project /path/to/project grant my-agent --worktree NAME
# 3. Set its token, and go to its worktree.
export WORKBENCH_TOKEN=wba_…your-token…
