import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["kernel_ext/panels/static/", "**/.*/", "node_modules/", "build/", "dist/"] },
  js.configs.recommended,
  { files: ["kernel_ext/panels/src/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["tests/browser/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["**/*.mjs"], languageOptions: { globals: globals.node } },
  {
    rules: {
      eqeqeq: "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Names and titles come from agents: use textContent." },
        { property: "outerHTML", message: "Names and titles come from agents: use textContent." },
        { property: "insertAdjacentHTML", message: "Names and titles come from agents: use textContent." },
      ],
      "prefer-const": "error",
    },
  },
];
