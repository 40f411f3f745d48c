import js from "@eslint/js";
import globals from "globals";

/** The folders of the panel, from the bottom up: a folder imports from itself and from those before it. */
const FOLDERS = [
  "lib",
  "link",
  "components",
  "charts",
  "contents",
  "models",
  "messages",
  "saved_views",
  "review",
  "projects",
  "processes",
  "agents",
  "tasks",
  "integration",
  "tools",
  "network",
  "personalities",
  "inbox",
  "chat",
  "definitions",
  "worktrees",
  "analytics",
  "runs",
  "admin",
];

/** Forbids a folder every other one that is not before it, `desk.js` included. */
function importsOnlyFromBelow(folder, at) {
  const allowed = FOLDERS.slice(0, at).join("|") || "(?!)";
  return {
    files: [`kernel_ext/panels/src/${folder}/**/*.js`],
    rules: {
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            {
              regex: `^\\.\\./(?!(${allowed})/)`,
              message: `${folder}/ may import only from ${FOLDERS.slice(0, at).join(", ") || "itself"}.`,
            },
          ],
        },
      ],
    },
  };
}

export default [
  { ignores: ["kernel_ext/panels/static/", "**/.*/", "node_modules/", "build/", "dist/"] },
  js.configs.recommended,
  { files: ["kernel_ext/panels/src/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["workbench/analytics/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["tests/{bench,browser}/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["**/*.mjs"], languageOptions: { globals: globals.node } },
  {
    rules: {
      eqeqeq: "error",
      "max-lines": ["error", 500],
      "max-lines-per-function": ["error", { max: 45, skipBlankLines: true, skipComments: true }],
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Names and titles come from agents: use textContent." },
        { property: "outerHTML", message: "Names and titles come from agents: use textContent." },
        { property: "insertAdjacentHTML", message: "Names and titles come from agents: use textContent." },
      ],
      "prefer-const": "error",
    },
  },
  ...FOLDERS.map(importsOnlyFromBelow),
];
