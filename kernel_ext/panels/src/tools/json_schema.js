/** The parameters of a tool (JSON Schema) as fields of a form, and what was typed there as arguments. Pure. */

/**
 * One parameter. `options` are the values of a choice; a value of kind "json" is typed as JSON.
 * @typedef {{name: string, kind: "text"|"secret"|"number"|"integer"|"choice"|"json", required: boolean,
 *   description: string, initial: string, options: unknown[]}} Parameter
 */

const DEEPEST = 8;

/** @param {any} schema of the arguments @returns {Parameter[]|null} null: it does not list them by name */
export function parametersOf(schema) {
  if (!isObject(schema?.properties)) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(schema.properties).map(([name, part]) => parameter(name, part, schema, required.has(name)));
}

function parameter(name, part, root, required) {
  const schema = resolved(part, root);
  const options = optionsOf(schema);
  const kind = options.length ? "choice" : kindOf(schema);
  return {
    name,
    kind,
    required,
    description: textOf(schema.description),
    initial: initialOf(schema, kind, options),
    options,
  };
}

/** A schema without references to others, and without the null that a value may also be. */
function resolved(part, root, depth = 0) {
  if (!isObject(part) || depth > DEEPEST) return {};
  const { $ref: reference = "", ...own } = part;
  const [, name] = /^#\/\$defs\/([^/]+)$/.exec(reference) ?? [];
  if (name) return { ...resolved(root.$defs?.[name], root, depth + 1), ...own };
  const choices = part.anyOf ?? part.oneOf;
  if (!Array.isArray(choices)) return part;
  const others = choices.filter((choice) => choice?.type !== "null");
  return others.length === 1 ? { ...resolved(others[0], root, depth + 1), ...described(part) } : described(part);
}

function described({ description, default: initial }) {
  return { ...(description && { description }), ...(initial !== undefined && { default: initial }) };
}

function optionsOf({ enum: values, const: only, type }) {
  if (only !== undefined) return [only];
  if (Array.isArray(values)) return values.filter((value) => value !== null);
  return typesOf(type).join() === "boolean" ? [true, false] : [];
}

function kindOf({ type, format, writeOnly }) {
  const [only, ...others] = typesOf(type);
  if (others.length) return "json";
  if (only === "string") return format === "password" || writeOnly ? "secret" : "text";
  return only === "number" || only === "integer" ? only : "json";
}

function typesOf(type) {
  return [type].flat().filter((name) => name && name !== "null");
}

function initialOf({ default: value }, kind, options) {
  if (value === undefined || value === null) return "";
  if (kind === "choice") return options.includes(value) ? String(options.indexOf(value)) : "";
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

/**
 * What was typed, as arguments. An empty field that is not required is left out.
 * @param {Parameter[]} parameters @param {Record<string, string>} typed texts by name; of a choice the index of its option
 * @returns {{values: Record<string, unknown>, problems: Record<string, string>}} problems by name
 */
export function argumentsOf(parameters, typed) {
  const [values, problems] = [{}, {}];
  for (const parameter of parameters) {
    const text = typed[parameter.name] ?? "";
    if (!text && !(parameter.required && parameter.kind === "text")) {
      if (parameter.required) problems[parameter.name] = "A value is required.";
      continue;
    }
    try {
      values[parameter.name] = READ[parameter.kind](text, parameter);
    } catch (error) {
      problems[parameter.name] = error.message;
    }
  }
  return { values, problems };
}

/** How a text is read, by kind of parameter. @type {Record<string, (text: string, parameter: Parameter) => unknown>} */
const READ = {
  text: (text) => text,
  secret: (text) => text,
  number: (text) => number(text, Number.isFinite, "Type a number."),
  integer: (text) => number(text, Number.isSafeInteger, "Type a whole number."),
  choice: (text, { options }) => options[Number(text)],
  json: (text) => json(text),
};

function number(text, isRight, problem) {
  const value = Number(text.trim() || NaN);
  if (!isRight(value)) throw new Error(problem);
  return value;
}

/** A value from JSON text, or an error that says what is wrong. @param {string} text @returns {unknown} */
export function json(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}.`, { cause: error });
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value) {
  return typeof value === "string" ? value : "";
}
