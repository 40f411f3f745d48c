-- What may be spent: by the project, by a plan, or by a task with its subtasks. scope: project, plan:NAME or task:ID.
-- tokens, usd, attempts: the limits; null: there is none. stated: what was said, as JSON, which an answer to the question
-- of a budget does not change; stated_by: settings, plan or person. nearly, used_up: the names of the limits of which 80 %,
-- and all, is spent, with spaces between. stopped: the person wants no more of it.

CREATE TABLE budgets (
    scope TEXT PRIMARY KEY,
    tokens {{big}},
    usd {{real}},
    attempts {{big}},
    stated TEXT NOT NULL,
    stated_by TEXT NOT NULL CHECK (stated_by IN ('settings', 'plan', 'person')),
    nearly TEXT NOT NULL DEFAULT '',
    used_up TEXT NOT NULL DEFAULT '',
    stopped {{big}} NOT NULL DEFAULT 0,
    set_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX budgets_used_up ON budgets (scope) WHERE used_up <> '';
CREATE INDEX spending_by_plan ON spending (plan) WHERE plan IS NOT NULL;
