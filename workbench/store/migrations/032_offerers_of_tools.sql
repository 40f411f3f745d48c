-- A tool is known by its name and by who offers it: workbench, notebook, project, definition:ID or node:RID. Whose tools
-- were allowed before was not recorded, so these are asked about once more. An empty offered_by is whoever offers one of
-- this name; in a call: not recorded. configuration: identifies how the MCP server was configured.

ALTER TABLE tool_calls ADD COLUMN offered_by TEXT NOT NULL DEFAULT '';
ALTER TABLE tool_calls ADD COLUMN offerer_name TEXT NOT NULL DEFAULT '';
ALTER TABLE tool_calls ADD COLUMN configuration TEXT;

CREATE TABLE permissions_of_offerers (
    tool TEXT NOT NULL,
    offered_by TEXT NOT NULL,
    offerer_name TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('always', 'ask', 'never')),
    fingerprint TEXT NOT NULL,
    offer TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at {{big}} NOT NULL,
    PRIMARY KEY (tool, offered_by)
) {{strict}};
INSERT INTO permissions_of_offerers
    (tool, offered_by, offerer_name, permission, fingerprint, offer, decided_by, decided_at)
SELECT tool, '', '', permission, '', '', decided_by, decided_at FROM tool_permissions WHERE permission <> 'always';
DROP TABLE tool_permissions;
ALTER TABLE permissions_of_offerers RENAME TO tool_permissions;
