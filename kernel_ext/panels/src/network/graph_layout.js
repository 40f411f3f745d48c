/** Places for the nodes of a network: the one with the most edges in the middle, the others in two columns beside it. Pure. */

export const [WIDTH, HEIGHT, DOWN] = [148, 40, 48];
const EDGE = 8;
/** How far the middle of a column may bend outwards. */
const BEND = 48;
const LEAST_GAP = 56;
/** Between a node and a line that passes it. */
const CLEAR = 10;
const ARROW = 7;

/** @typedef {{x: number, y: number}} Place of the upper left corner */

/**
 * @param {string[]} nodes in a fixed order @param {import("./peers.js").Line[]} lines @param {string} own
 * @param {number} width that there is
 * @returns {{places: Map<string, Place>, columns: string[][], width: number, height: number}}
 */
export function layout(nodes, lines, own, width) {
  const columns = columnsOf(nodes, lines, own);
  const wide = Math.max(width, columns.length * WIDTH + (columns.length - 1) * LEAST_GAP + 2 * EDGE);
  const margin = columns.length === 3 && columns[0].length < 3 ? HEIGHT : EDGE; // room for lines that pass the middle
  const height = Math.max(...columns.map(({ length }) => length)) * DOWN - (DOWN - HEIGHT) + 2 * margin;
  const bend = columns.length === 3 ? Math.min(BEND, (wide - 3 * WIDTH - 2 * LEAST_GAP) / 2 - EDGE) : 0;
  const places = new Map();
  columns.forEach((column, at) => place(column, at, { columns, wide, height, bend: Math.max(0, bend) }, places));
  return { places, columns, width: wide, height };
}

/** The node with the most lines alone, between the others, of which the project's own is the first. */
function columnsOf(nodes, lines, own) {
  if (nodes.length < 3) return [[own], ...nodes.filter((node) => node !== own).map((node) => [node])];
  const middle = hubOf(nodes, lines, own);
  const others = nodes.filter((node) => node !== middle).sort((a, b) => Number(b === own) - Number(a === own));
  const side = (which) => others.filter((_, at) => at % 2 === which);
  return [side(0), [middle], side(1)].filter((column) => column.length);
}

/** Place a column; those at its ends stand nearer to the middle, so that lines fan out. */
function place(column, at, { columns, wide, height, bend }, places) {
  const across = columns.length === 1 ? 0.5 : at / (columns.length - 1);
  const left = EDGE + (wide - 2 * EDGE - WIDTH) * across;
  const top = (height - (column.length * DOWN - (DOWN - HEIGHT))) / 2;
  const inwards = Math.sign(0.5 - across);
  column.forEach((node, row) => {
    const away = ((row + 0.5) / column.length) * 2 - 1;
    places.set(node, { x: left + (column.length > 2 ? inwards * bend * away * away : 0), y: top + row * DOWN });
  });
}

/** The node that most lines begin or end at; this project's own among equals. */
function hubOf(nodes, lines, own) {
  const degrees = new Map(nodes.map((node) => [node, 0]));
  for (const { from, to } of lines) for (const end of [from, to]) degrees.set(end, (degrees.get(end) ?? 0) + 1);
  return nodes.reduce((best, node) => (degrees.get(node) > degrees.get(best) ? node : best), own);
}

/**
 * The path of a line, from the side of one node to that of the other, around the one in the middle.
 * @param {Place} from @param {Place} to @param {Place|null} hub that it may have to pass
 * @param {number} shift of its middle, so that two lines between the same nodes stand apart
 * @returns {{path: string, middle: [number, number]}}
 */
export function pathOf(from, to, hub, shift) {
  const [x0, x1] = sides(from, to);
  const [y0, y1] = [from.y + HEIGHT / 2 + shift, to.y + HEIGHT / 2 + shift];
  if (Math.abs(from.x - to.x) < WIDTH) return inOneColumn(x0, y0, x1, y1, from.x > WIDTH ? -LEAST_GAP : LEAST_GAP);
  const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
  if (!hub || Math.abs(from.x - to.x) < WIDTH + hub.x / 2 || from === hub || to === hub) {
    return { path: `M${x0} ${y0}C${middle[0]} ${y0} ${middle[0]} ${y1} ${x1} ${y1}`, middle };
  }
  const isAbove = middle[1] <= hub.y + HEIGHT / 2;
  middle[1] = isAbove ? Math.min(middle[1], hub.y - CLEAR) : Math.max(middle[1], hub.y + HEIGHT + CLEAR);
  middle[1] += isAbove ? -shift : shift;
  const towards = x0 < x1 ? 1 : -1;
  const [reach, half] = [towards * LEAST_GAP, towards * (WIDTH / 2 + LEAST_GAP / 2)];
  const [x, y] = middle;
  const path = `M${x0} ${y0}C${x0 + reach} ${y0} ${x - half} ${y} ${x} ${y}S${x1 - reach} ${y1} ${x1} ${y1}`;
  return { path, middle };
}

/** The head of an arrow at the end of a line, which meets a side of a node at a right angle. @param {Place} from @param {Place} to @param {number} shift */
export function arrowAt(from, to, shift) {
  const x = sides(from, to)[1];
  const back = x === to.x ? -ARROW : ARROW;
  return `M${x} ${to.y + HEIGHT / 2 + shift}l${back} ${-ARROW / 2}v${ARROW}Z`;
}

function inOneColumn(x0, y0, x1, y1, bulge) {
  const path = `M${x0} ${y0}C${x0 + bulge} ${y0} ${x1 + bulge} ${y1} ${x1} ${y1}`;
  return { path, middle: [(x0 + x1) / 2 + bulge * 0.75, (y0 + y1) / 2] };
}

/** The sides of two nodes that face each other; of nodes in one column the inner ones. */
function sides(from, to) {
  if (Math.abs(from.x - to.x) >= WIDTH) return from.x < to.x ? [from.x + WIDTH, to.x] : [from.x, to.x + WIDTH];
  return from.x > WIDTH ? [from.x, to.x] : [from.x + WIDTH, to.x + WIDTH];
}
