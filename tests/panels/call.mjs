/** Calls functions of the panel: `[module, name, calls]` a line, the arguments of each call; what each returned a line. */
import { createInterface } from "node:readline";
import process from "node:process";

const plain = (_, value) => (value instanceof Map ? Object.fromEntries(value) : value);

for await (const line of createInterface({ input: process.stdin })) {
  const [module, name, calls] = JSON.parse(line);
  const { [name]: called } = await import(`../../kernel_ext/panels/src/${module}`);
  console.log(
    JSON.stringify(
      calls.map((given) => called(...given)),
      plain,
    ),
  );
}
