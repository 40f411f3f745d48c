/** Numbers, times and lists as text. Pure; the time now is an argument. */

const SUFFIXES = { one: "st", two: "nd", few: "rd", other: "th" };
const BYTES = ["B", "KB", "MB", "GB", "TB"];
/** Hours from 00 to 23: with `hour12: false` some browsers write midnight as 24:00. */
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const ordinals = new Intl.PluralRules("en", { type: "ordinal" });

/** "3 commits" @param {number} count @param {string} noun @param {string} [many] */
export function plural(count, noun, many = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : many}`;
}

/** "2nd" @param {number} number */
export function ordinal(number) {
  return `${number}${SUFFIXES[ordinals.select(number)]}`;
}

/** "a, b and 3 more" @param {string[]} names @param {number} [most] @param {number} [total] when not all names are given */
export function shortList(names, most = 3, total = names.length) {
  const shown = names.slice(0, most).join(", ");
  return total > most ? `${shown} and ${(total - most).toLocaleString("en")} more` : shown;
}

/** "1,204", "3.5", "0.012" @param {number} value */
export function shortNumber(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 100 ? 3 : 15 });
}

/** "$0.0031", "$1.20" @param {number} value */
export function dollars(value) {
  return `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`;
}

/** Any value as one line of text. @param {unknown} value @param {number} [limit] */
export function oneLine(value, limit = 160) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

/** "48 MB" @param {number} bytes */
export function byteSize(bytes) {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < BYTES.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${BYTES[unit]}`;
}

/** How long ago: "just now", "12 s", "3 min", "2 h", "4 d". @param {string} iso @param {number} now in ms */
export function age(iso, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(iso)) / 1000));
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** "3 min ago" @param {string} iso @param {number} now in ms */
export function ago(iso, now) {
  const since = age(iso, now);
  return since === "just now" ? since : `${since} ago`;
}

/** "Nov 21, 10:05", in the reader's time zone; "Nov 21, 2024, 10:05" for another year than that of `now`. @param {string|number} iso @param {number} [now] in ms */
export function dateTime(iso, now = Date.now()) {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleString("en", {
    ...(isThisYear ? {} : { year: "numeric" }),
    month: "short",
    day: "numeric",
    ...CLOCK,
  });
}

/** "10:05:42", in the reader's time zone. @param {string} iso */
export function timeOfDay(iso) {
  return new Date(iso).toLocaleTimeString("en", { ...CLOCK, second: "2-digit" });
}

/** "10:05", in the reader's time zone. @param {number} ms */
export function hourMinute(ms) {
  return new Date(ms).toLocaleTimeString("en", CLOCK);
}

/** How long something took: "40 ms", "1.4 s", "12 s", "3 min", "2 h 5 min", "8 h". @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 0.9995) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return [hours && `${hours} h`, (rest || !hours) && `${rest} min`].filter(Boolean).join(" ");
}

/** Added and removed lines of all files together; binary files count as none. */
export function lineCounts(files) {
  return {
    added: files.reduce((sum, file) => sum + (file.added ?? 0), 0),
    removed: files.reduce((sum, file) => sum + (file.removed ?? 0), 0),
  };
}

/** A path of the project, relative to the project; any other path as it is. @param {string} path */
export function projectPath(path) {
  const at = path.indexOf("/.aiswarm/");
  return at < 0 ? path : path.slice(at + 1);
}
