/** What has changed between two versions of a personality. Pure. */

/** What is compared of a trait, with labels. */
const PARTS = {
  value: "value",
  description: "description",
  type: "type",
  is_callable: "can be called",
  input_schema: "arguments",
  output_schema: "result",
  version: "version of the function",
  read_only: "only reads",
};

/**
 * @typedef {{path: string, before: unknown, after: unknown}} Change null: it was not there
 * @param {any[]} before traits @param {any[]} after traits
 * @returns {Change[]}
 */
export function traitChanges(before, after) {
  const [old, fresh] = [before, after].map((traits) => new Map(traits.map((trait) => [trait.name, trait])));
  return [...new Set([...old.keys(), ...fresh.keys()])].flatMap((name) =>
    changesOf(name, old.get(name), fresh.get(name)),
  );
}

function changesOf(name, before, after) {
  if (!before || !after) return [{ path: name, before: summary(before), after: summary(after) }];
  return Object.entries(PARTS)
    .filter(([part]) => JSON.stringify(before[part] ?? null) !== JSON.stringify(after[part] ?? null))
    .map(([part, label]) => ({ path: `${name}: ${label}`, before: before[part] ?? null, after: after[part] ?? null }));
}

/** A trait that was added or removed, in a line. */
function summary(trait) {
  if (!trait) return null;
  return trait.is_callable ? trait.description || "a tool" : trait.value;
}

/**
 * The changes in a difference, as `list_personality_changes` gives it.
 * @param {{added: any[], removed: any[], changed: {name: string, fields: any[]}[], fields: any[]}} difference
 * @returns {Change[]}
 */
export function changesIn({ added, removed, changed, fields }) {
  return [
    ...added.map((trait) => ({ path: trait.name, before: null, after: summary(trait) })),
    ...removed.map((trait) => ({ path: trait.name, before: summary(trait), after: null })),
    ...changed.flatMap(({ name, fields: parts }) =>
      parts.map(({ name: part, before, after }) => ({ path: `${name}: ${PARTS[part] ?? part}`, before, after })),
    ),
    ...fields.map(({ name, before, after }) => ({ path: name, before, after })),
  ];
}
