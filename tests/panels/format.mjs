/** Writes times as the panel does. Standard input: the name of a function and its arguments; standard output: the text. */

import { readFileSync } from "node:fs";
import process from "node:process";

import * as format from "../../kernel_ext/panels/src/lib/format.js";

const [name, ...values] = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(format[name](...values)));
