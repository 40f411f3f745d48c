/** The end of something that grows. Pure. */

/**
 * What a newer tail has after what is known; the tail itself when they do not meet.
 * @param {string[]} known @param {string[]} tail @returns {string[]}
 */
export function added(known, tail) {
  for (let size = Math.min(known.length, tail.length); size > 0; size -= 1) {
    const start = known.length - size;
    if (tail.every((line, at) => at >= size || line === known[start + at])) return tail.slice(size);
  }
  return tail;
}
