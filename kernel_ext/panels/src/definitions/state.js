/** What the view of definitions knows without asking: its sections, labels, and the order of things. Pure. */

export const MODES = {
  interactive: "Interactive: converses",
  autonomous: "Autonomous: does tasks",
  tools: "Tools: exports tools",
};
export const INCLUDE = {
  always: "Always, in the prompt",
  agent: "When the agent asks",
  manual: "When you ask",
};
/** Sections of a definition that are lists: the label, and the noun for one of them. */
export const SECTIONS = {
  rules: { label: "Rules", one: "rule" },
  references: { label: "References", one: "reference" },
  tools: { label: "Exported tools", one: "tool" },
  providers: { label: "Providers", one: "provider" },
  servers: { label: "MCP servers", one: "MCP server" },
};

/**
 * A place in a definition: `overview`, `prompt`, `preview`, `history`, a section such as `rules`, or one thing in it, `rules/polite`;
 * `rules/` is a new one.
 * @typedef {{id: string, label: string, level: number, note: string}} Place
 */

/** @param {string} id @returns {{section: string, name: string|null}} */
export function parsePlace(id) {
  const at = id.indexOf("/");
  return at < 0 ? { section: id, name: null } : { section: id.slice(0, at), name: id.slice(at + 1) };
}

/** The places of a definition, in the order of the tree. @param {any} definition as it was read @returns {Place[]} */
export function placesOf(definition) {
  const sections = Object.entries(SECTIONS).flatMap(([section, { label }]) => {
    const items = definition[section];
    if (section === "tools" && !items.length && definition.info.mode !== "tools") return [];
    const note = items.length ? items.length.toLocaleString("en") : "";
    const below = items.map((item) => ({
      id: `${section}/${item.name}`,
      label: item.name,
      level: 2,
      note: item.include ?? "",
    }));
    return [{ id: section, label, level: 1, note }, ...below];
  });
  return [
    { id: "overview", label: "Overview", level: 1, note: "" },
    { id: "prompt", label: "Prompt", level: 1, note: "" },
    { id: "preview", label: "Preview", level: 1, note: "" },
    { id: "history", label: "History", level: 1, note: "" },
    ...sections,
  ];
}

/** The directory that is proposed for a name. @param {string} name @returns {string} */
export function proposedPath(name) {
  const slug = name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 50);
  return slug ? `./agents/${slug}` : "";
}

/** @param {any} one @param {any} other */
export function byName(one, other) {
  return one.name.localeCompare(other.name, undefined, { numeric: true }) || (one.id < other.id ? -1 : 1);
}
