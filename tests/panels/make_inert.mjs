/** Makes texts inert as the panel does. Standard input: a list of texts; standard output: the list of what is shown. */

import process from "node:process";
import { text } from "node:stream/consumers";

import { inert } from "../../kernel_ext/panels/src/lib/inert.js";

process.stdout.write(JSON.stringify(JSON.parse(await text(process.stdin)).map(inert)));
