/** Projects, sessions and teams, as choices and in words. Pure. */

/** @typedef {import("../link/store.js").Tables} Tables */

const byName = (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true });

/** Rows in the order of their names. @param {Map<any, any>} table */
export function named(table) {
  return [...table.values()].sort(byName);
}

/** "Lab / Day 1", or null when there is no such session. @param {Tables} tables */
export function sessionName(tables, id) {
  const session = tables.sessions.get(id);
  return session ? `${session.project} / ${session.name}` : null;
}

/** Sessions under their projects, for a choice. @param {Tables} tables @returns {[string, [string, string][]][]} */
export function sessionGroups(tables) {
  return named(tables.projects)
    .map((project) => [project.name, sessionsOf(tables, project.id).map(({ id, name }) => [id, name])])
    .filter(([, sessions]) => sessions.length);
}

/** @param {Tables} tables */
export function sessionsOf(tables, projectId) {
  return named(tables.sessions).filter(({ project_id }) => project_id === projectId);
}

/** The teams of a session; of null, those that are in none. @param {Tables} tables */
export function teamsOf(tables, sessionId) {
  return named(tables.teams).filter(({ session_id }) => (session_id ?? null) === sessionId);
}

/** The session that an agent was put into last. @param {Tables} tables @returns {string|null} */
export function lastUsed(tables) {
  const used = [...tables.sessions.values()].filter(({ used_at }) => used_at);
  return used.sort((a, b) => b.used_at.localeCompare(a.used_at))[0]?.id ?? null;
}
