/** The values of traits as text to type, by the type of the trait. Pure. */

import { json } from "../tools/json_schema.js";

/** Labels of the types that can be chosen. Others are typed as JSON. */
export const TYPES = {
  str: "Text",
  int: "Whole number",
  float: "Number",
  bool: "Yes or no",
  list: "List (JSON)",
  dict: "Object (JSON)",
};

const READ = {
  str: (text) => text,
  int: (text) => number(text, Number.isSafeInteger, "Type a whole number."),
  float: (text) => number(text, Number.isFinite, "Type a number."),
  bool: (text) => text === "true",
  list: (text) => checked(json(text), Array.isArray, 'Type a list, such as ["a", "b"].'),
  dict: (text) => checked(json(text), isObject, 'Type an object, such as {"a": 1}.'),
};

/** The text with which a value is typed. @param {string} type @param {unknown} value @returns {string} */
export function textOf(type, value) {
  if (type === "str" && typeof value === "string") return value;
  return type in TYPES && isScalar(value) ? String(value) : JSON.stringify(value ?? null, null, 2);
}

/** The value that was typed. @param {string} type @param {string} text @returns {unknown} @throws {Error} what is wrong */
export function valueOf(type, text) {
  return (READ[type] ?? json)(text);
}

/** A value in one line, to be read. @param {unknown} value @returns {string} */
export function shortValue(value) {
  if (value === null || value === undefined) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value) && value.every(isScalar)) return value.join(", ") || "nothing";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function number(text, isRight, problem) {
  return checked(Number(text.trim() || NaN), isRight, problem);
}

function checked(value, isRight, problem) {
  if (!isRight(value)) throw new Error(problem);
  return value;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value) {
  return value !== null && typeof value !== "object";
}
