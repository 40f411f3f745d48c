/** Projects, sessions and teams: looked up, sorted, and as choices. Pure. */

/** @typedef {import("../link/store.js").Tables} Tables */

const byName = (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true });

/** Rows in the order of their names. @param {Map<any, any>} table */
export function sortedByName(table) {
  return [...table.values()].sort(byName);
}

/** "Lab / Day 1", or null when there is no such session. @param {Tables} tables @param {string|null} id */
export function sessionPath(tables, id) {
  const session = tables.sessions.get(id);
  return session ? `${session.project} / ${session.name}` : null;
}

/** Sessions grouped by project, as options of a choice. @param {Tables} tables @returns {[string, [string, string][]][]} */
export function sessionOptions(tables) {
  return sortedByName(tables.projects)
    .map((project) => [project.name, sessionsOf(tables, project.id).map(({ id, name }) => [id, name])])
    .filter(([, sessions]) => sessions.length);
}

/** The sessions of a project. @param {Tables} tables @param {string} projectId */
export function sessionsOf(tables, projectId) {
  return sortedByName(tables.sessions).filter(({ project_id }) => project_id === projectId);
}

/** The teams of a session; of null: those in no session. @param {Tables} tables @param {string|null} sessionId */
export function teamsOf(tables, sessionId) {
  return sortedByName(tables.teams).filter(({ session_id }) => (session_id ?? null) === sessionId);
}
