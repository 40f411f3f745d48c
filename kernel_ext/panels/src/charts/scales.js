/** From values to places on a chart, and the values that its axes name. Pure. */

/** The numbers that an axis from 0 names: round ones, 0 and about `count` more, the last not below `highest`. @param {number} highest @param {number} [count] @returns {number[]} */
export function ticks(highest, count = 2) {
  const top = highest > 0 ? highest : 1;
  const rough = top / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * (1 - 1e-9));
  const found = [];
  for (let at = 0; at < Math.ceil(top / step - 1e-9) + 1; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/** A function from values to places. A span of no length is drawn in its middle. @param {[number, number]} values @param {[number, number]} places */
export function linear([from, to], [begin, end]) {
  const span = to - from;
  return (value) => (span ? begin + ((value - from) / span) * (end - begin) : (begin + end) / 2);
}

/** Times that an axis names, evenly apart. @param {number} since in ms @param {number} until @param {number} count @returns {number[]} */
export function times(since, until, count) {
  return Array.from({ length: count }, (_, at) => since + ((until - since) * at) / (count - 1));
}

/** The lowest and the highest number; null without any. @param {number[]} values @returns {[number, number]|null} */
export function extent(values) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return null;
  return finite.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [finite[0], finite[0]]);
}
