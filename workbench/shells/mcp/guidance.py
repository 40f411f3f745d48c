"""What the server tells a client in the `instructions` of MCP: how to work here, according to what the caller may do.

They reach the model with every session, so they say only what the descriptions of the tools do not.
"""

from __future__ import annotations

from workbench.model import Level

_ABOUT = "Workbench coordinates a team of agents that work on one git repository."

_WAITING = """\
To wait, give a tool `wait_seconds` (up to 30), and call it again if it returns without news. Do not poll without
it, and do not sleep in between."""

_APPROVALS = """\
Only a person decides approvals, in Workbench's panel or with `workbench approve`; an agent cannot. While you
wait for one, tell your user that a person has to decide."""

_ERRORS = """\
A refused call returns an error with a `code`, and a `message` that says what to do next; calling again without
doing that is refused again."""

_LEASE_LOST = """\
`LEASE_LOST` means that you no longer hold the task: its lease ran out, or it was cancelled or reassigned. Stop
working on it and do not send its result again; another agent may already have it."""

_ANONYMOUS = """\
You are not admitted now.

1. Unless you have a token, call `register` once, with a name and the persona you want to work as. Keep the token
   that it returns: it is shown only once.
2. A person decides, in Workbench's panel or with `workbench approve`. Tell your user that you wait, and call
   `registration_status` with `wait_seconds` 30 until `status` is no longer `pending`.
3. If it is `rejected`, `reason` says why: report that, and stop. Do not register again unless your user asks
   for it.
4. If you are admitted, your tools change. Over standard input and output they appear by themselves: list them
   again. Over HTTP, connect again with the header `Authorization: Bearer <token>`.

Then a worker takes tasks with `heartbeat_and_get_tasks` and `claim_task`; a planner creates them with
`create_plan`."""

_READER = """\
You may read what is visible to you, and change nothing. `whoami` shows your grant; a person can extend it."""

_WORKER = """\
You are a worker. Repeat:

1. `heartbeat_and_get_tasks` with `wait_seconds` 30 renews your leases and lists the tasks you hold and those
   you could claim. It also has new `messages` to you: act on them, and give their ids to `read_messages` as `acted`.
2. `claim_task` claims the best one for you and returns it in full. A claim is a lease, until
   `lease_expires_at`: each heartbeat or progress report renews it, so call one of them well before that time,
   also during long work.
3. Do what its `description` says, in its worktree if it has one. `report_task_progress` says how it goes.
4. End it with `complete_task` and the result, or with `fail_task` and the reason; `release_task` gives it back
   unfinished."""

_PLANNER = """\
You are a planner: you split work into tasks and see them through; other agents do them.

1. `create_worktree` for each line of work; `create_plan` (or `create_task`) for its tasks, each with a persona,
   its dependencies and its worktree. Workers see them at once.
2. `spawn_agent` starts an agent in a worktree; `list_profiles` lists the programs. The agent begins when a person
   has approved it.
3. `wait_for_task` waits for the end of a task, and `list_events` for any event. Before you `retry_task` one
   that failed, read `get_task_logs`.
4. When a worktree's tasks are completed, read `get_worktree_diff`, then call `integrate_worktree`: it asks a
   person to merge the worktree.
5. `get_approval` with `wait_seconds` 30 and the `approval_id` that the request returned waits until the approval is
   `settled`. If it is `rejected`, `reason` says why: have that mended by a new task in the same worktree, and call
   `integrate_worktree` again. If it is `approved`, `outcome` says what was merged."""

_SUPERVISED = """\
You were started for one task, which your prompt describes. It is claimed for you, and its lease is renewed for
you: do not claim tasks, and do not send heartbeats.

`report_task_progress` says how it goes. Work in the current directory; what you leave uncommitted is committed
when you end, and ending with success completes the task: `complete_task` is not needed. It, `fail_task` and
`release_task` take effect when you end: call one of them last, if at all. What only a person can decide,
`ask_person` asks; `read_messages` waits for the answer, and for what else you are told."""

_OPERATOR = """\
You act as the operator, with all rights of the person who runs the team. `list_approvals` lists the requests that
wait; `approve` and `reject` decide them. Decide only what your user has told you to decide, and give a `reason`
when you reject: the requester gets it."""


def guidance(level: Level, *, supervised: bool = False) -> str:
    """The instructions for a caller.

    Args:
        supervised: a supervisor started it for one task, which is claimed for it.
    """
    match level:
        case Level.ANONYMOUS:
            parts = [_ANONYMOUS]
        case Level.READ:
            parts = [_READER, _WAITING]
        case Level.OPERATOR:
            parts = [_OPERATOR, _WAITING]
        case _ if supervised:
            parts = [_SUPERVISED, _LEASE_LOST]
        case Level.WORKER:
            parts = [_WORKER, _WAITING, _LEASE_LOST, _APPROVALS]
        case Level.PLANNER:
            parts = [_PLANNER, _WAITING, _LEASE_LOST, _APPROVALS]
    return "\n\n".join((_ABOUT, *parts, _ERRORS))
