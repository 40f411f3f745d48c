/** What several runs have recorded by step: means over runs, and which run is the best. Pure. */

/** @typedef {[number, number][]} Points steps and finite values, by step */

/** The value of a series at a step, between two of its steps on the line between them; null: before or behind it. @param {Points} points @param {number} step */
export function valueAt(points, step) {
  const behind = points.findIndex(([at]) => at >= step);
  if (behind < 0) return null;
  const [to, value] = points[behind];
  if (to === step) return value;
  if (behind === 0) return null;
  const [from, before] = points[behind - 1];
  return before + ((value - before) * (step - from)) / (to - from);
}

/**
 * The mean of series at each step of any of them, and the values a standard deviation (n - 1) below and above it.
 * @param {Points[]} series @returns {[number, number, number, number][]} step, mean, mean - sd, mean + sd
 */
export function means(series) {
  const steps = [...new Set(series.flatMap((points) => points.map(([step]) => step)))].sort((a, b) => a - b);
  return steps.map((step) => {
    const values = series.map((points) => valueAt(points, step)).filter((value) => value !== null);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const deviation = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
    return [step, mean, mean - deviation, mean + deviation];
  });
}

/** The numbers among the values of a series, one that is thinned or not. @param {[number, unknown][]} points @returns {Points} */
export function numbers(points) {
  return /** @type {Points} */ (points.filter(([, value]) => typeof value === "number"));
}

/**
 * The id of the run with the lowest or highest last value of a metric; null: none has a number.
 * @param {{id: number, metrics: Record<string, unknown>}[]} runs @param {string} metric @param {string} which "lowest" or "highest"
 */
export function bestOf(runs, metric, which) {
  const sign = which === "lowest" ? 1 : -1;
  const measured = runs.filter(({ metrics }) => typeof metrics[metric] === "number");
  const [best] = measured.sort((a, b) => sign * (Number(a.metrics[metric]) - Number(b.metrics[metric])));
  return best?.id ?? null;
}
