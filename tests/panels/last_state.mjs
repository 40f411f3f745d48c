/** Saves a notebook as the panel changes it: reads its content, the id of the widget and its last state as JSON. */
import process from "node:process";
import { text } from "node:stream/consumers";

import { withLastState } from "../../kernel_ext/panels/src/link/last_state.js";

const { notebook, id, html } = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(withLastState(notebook, id, html)));
