/** The form of a tool, asked of the panel's own code. Standard input: `[schema, typed]`; output: the parameters, and the arguments. */

import { readFileSync } from "node:fs";
import process from "node:process";

import { argumentsOf, parametersOf } from "../../kernel_ext/panels/src/tools/json_schema.js";

const [schema, typed] = JSON.parse(readFileSync(0, "utf8"));
const parameters = parametersOf(schema);
const read = parameters && argumentsOf(parameters, typed);
process.stdout.write(JSON.stringify({ parameters, ...read }));
