// The matrix on canvases: the cells, drawn once, above them the marks of the active row, column and cell, and the labels,
// which stay in sight where the cells scroll. The effects, where there are any, are a strip beside the cells and one
// below them, in the same colours.

const LABEL_FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
const CELL = { least: 4, labelled: 14, numbered: 44, gap: 7, widest: 80, highest: 36, page: 460 };
const LONGEST = 120; // pixels of a label
const MOST_LABELLED = 60000; // larger matrices have no labels, so that their canvases stay small
const SHARP = 4e6; // pixels of a canvas that is drawn at the resolution of the screen

function makeMatrix(panel) {
  const { a, b } = panel.grid.items;
  const label = `${a.length} by ${b.length}: a down, b across. The texts and the table of pairs hold its numbers.`;
  const canvas = (name) => make("canvas", { className: `pl-${name}`, "aria-hidden": "true" });
  const [corner, top, left, marks] = ["corner", "top", "left", "marks"].map(canvas);
  const cells = make("canvas", { role: "img", "aria-label": label });
  const stack = make("div", { className: "pl-stack" }, corner, top, left, cells, marks);
  const node = make("div", { className: "pl-matrix", tabIndex: 0, role: "group", "aria-label": "Matrix" }, stack);
  node.addEventListener("scroll", panel.redraw, { passive: true });
  const matrix = { node, corner, top, left, cells, marks, layout: null };
  const placeOf = (event) => {
    const { target, offsetX, offsetY } = event;
    const x = offsetX + (target === marks || target === top ? matrix.layout.x : 0);
    const y = offsetY + (target === marks || target === left ? matrix.layout.y : 0);
    const place = target === stack ? null : placeAt(matrix.layout, x, y);
    stack.classList.toggle("pl-cell", place !== null);
    return place;
  };
  stack.addEventListener("pointermove", (event) => panel.hover(placeOf(event)));
  stack.addEventListener("pointerleave", () => panel.hover(null));
  stack.addEventListener("click", (event) => panel.pin(placeOf(event)));
  return matrix;
}

// The layout for a width in pixels. As cells get narrower, column labels are horizontal, then slanted, then vertical.
// Where they do not fit even so, the matrix scrolls below its labels; a very large one, and one on paper, has none.
function layOut(grid, width, paper) {
  const [rows, columns] = ["a", "b"].map((side) =>
    grid.items[side].map((item) => (item.folded ? "special" : plain(item.text, 24))),
  );
  const context = document.createElement("canvas").getContext("2d");
  context.font = LABEL_FONT;
  const widest = (labels) => Math.min(LONGEST, largest(labels.map((label) => context.measureText(label).width)));
  const head = Math.min(Math.max(widest(rows) + 9, 54), Math.max(60, 0.28 * width));
  const label = widest(columns);
  const [gap, strip] = grid.hasEffects ? [CELL.gap, 1] : [0, 0];
  if (strip) [rows, columns].forEach((labels) => labels.push("effects"));
  const fit = (left, right) => Math.floor(Math.min(CELL.widest, (width - left - right - gap - 1) / columns.length));
  const slope = label * Math.SQRT1_2 + 6;
  const highest = paper ? Math.min(CELL.highest, CELL.page / rows.length) : CELL.highest;
  const scrolled = !paper && rows.length * columns.length <= MOST_LABELLED ? CELL.labelled : 0;
  const plans = [
    { turn: 0, w: fit(head, 0), least: label + 8, x: head, y: 22, extra: 0 },
    { turn: -Math.PI / 4, w: fit(head, slope), least: 18, x: head, y: slope + 12, extra: slope },
    { turn: -Math.PI / 2, w: Math.max(scrolled, fit(head, 0)), least: CELL.labelled, x: head, y: label + 12, extra: 0 },
    { turn: null, w: Math.max(paper ? 1 : CELL.least, fit(1, 0)), least: 0, x: 1, y: 1, extra: 0 },
  ];
  const plan = plans.find(({ turn, w, least }) => w >= least && (turn === null || highest >= CELL.labelled));
  const { w, x, y, extra } = plan;
  const h = Math.min(w, highest);
  // Where a column and a row begin; the strips are behind a gap.
  const lefts = columns.map((_, j) => x + w * j + (j === columns.length - strip ? gap : 0));
  const tops = rows.map((_, i) => y + h * i + (i === rows.length - strip ? gap : 0));
  const [right, bottom] = [lefts.at(-1) + w, tops.at(-1) + h];
  return { ...plan, rows, columns, lefts, tops, strip, h, right, bottom, width: right + extra + 1, height: bottom + 1 };
}

// The cell, row or column at a point of the matrix.
function placeAt({ lefts, tops, strip, w, h, x, y }, left, top) {
  const i = tops.findIndex((start) => top >= start && top < start + h);
  const j = lefts.findIndex((start) => left >= start && left < start + w);
  const row = i >= 0 && i < tops.length - strip;
  const column = j >= 0 && j < lefts.length - strip;
  if (row && column) return { side: "a", item: i, partner: j };
  if (row && (left < x || j >= 0)) return { side: "a", item: i, partner: null };
  if (column && (top < y || i >= 0)) return { side: "b", item: j, partner: null };
  return null;
}

function drawMatrix(panel) {
  const { grid, matrix, shared } = panel;
  const layout = (matrix.layout = layOut(grid, matrix.node.clientWidth, shared.paper));
  const { x, y, rows, columns, width, height } = layout;
  const [corner, top, left] = [
    prepare(matrix.corner, 0, 0, x, y), prepare(matrix.top, x, 0, width - x, y), prepare(matrix.left, 0, y, x, height - y),
  ];
  const cells = prepare(matrix.cells, x, y, width - x, height - y);
  prepare(matrix.marks, x, y, width - x, height - y);
  const { a, b } = grid.items;
  for (let i = 0; i < rows.length; i += 1) {
    for (let j = 0; j < columns.length; j += 1) {
      if (i < a.length && j < b.length) drawCell(cells, shared, layout, i, j, grid.value("a", i, j), grid.noise("a", i, j));
      else if (i < a.length) drawCell(cells, shared, layout, i, j, grid.effects.a[i], false);
      else if (j < b.length) drawCell(cells, shared, layout, i, j, grid.effects.b[j], false);
    }
  }
  if (layout.turn === null) return;
  corner.fillStyle = shared.palette.faint;
  corner.textAlign = "left";
  corner.fillText("a ↓ b →", 0, y - 11);
  const colour = (labels, n) => (n < labels.length - layout.strip ? shared.palette.ink : shared.palette.faint);
  rows.forEach((_, i) => drawRowLabel(left, layout, i, colour(rows, i)));
  columns.forEach((_, j) => drawColumnLabel(top, layout, j, colour(columns, j)));
}

// A value that may be noise has no colour, and its number is faint.
function drawCell(context, shared, { lefts, tops, w, h }, i, j, value, noise) {
  const seam = w >= 9 ? 1 : 0;
  const shown = Math.abs(value) >= shared.state.threshold;
  const swatch = shared.palette.shade(shown && !noise ? value / shared.peak : 0);
  context.fillStyle = swatch.fill;
  context.fillRect(lefts[j], tops[i], w - seam, h - seam);
  if (w < CELL.numbered || !shown || !Number(value.toFixed(2))) return;
  context.fillStyle = noise ? shared.palette.faint : swatch.ink;
  context.fillText(signed(value, 2).replace("0.", "."), lefts[j] + 0.5 * w, tops[i] + 0.5 * h);
}

// The context of a canvas for a part of the matrix, in the matrix's own coordinates.
function prepare(canvas, left, top, width, height) {
  const ratio = width * height > SHARP ? 1 : Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  canvas.style.width = `${canvas.width / ratio}px`;
  canvas.style.height = `${canvas.height / ratio}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.translate(-left, -top);
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  context.textAlign = "center";
  return context;
}

function drawRowLabel(context, { rows, tops, x, h }, i, colour) {
  context.fillStyle = colour;
  context.textAlign = "right";
  context.fillText(shorten(context, rows[i], x - 8), x - 7, tops[i] + 0.5 * h);
}

function drawColumnLabel(context, { columns, lefts, turn, y, w }, j, colour) {
  context.save();
  context.fillStyle = colour;
  context.translate(lefts[j] + 0.5 * w, y - (turn ? 7 : 11));
  context.rotate(turn);
  context.textAlign = turn ? "left" : "center";
  context.fillText(shorten(context, columns[j], LONGEST), 0, 0);
  context.restore();
}

function shorten(context, text, room) {
  const chars = Array.from(text);
  while (chars.length > 1 && context.measureText(chars.join("")).width > room) chars.splice(-2, 2, "…");
  return chars.join("");
}

// Mark the active row or column, and the active cell in it.
function paintMatrix({ matrix, shared }, active) {
  const { w, h, x, y, lefts, tops, right, bottom, width, height } = matrix.layout;
  const context = matrix.marks.getContext("2d");
  context.clearRect(x, y, width + 1, height + 1);
  if (!active) return;
  const box = (row, column) => [
    column === null ? x : lefts[column], row === null ? y : tops[row],
    column === null ? right - x : w, row === null ? bottom - y : h,
  ];
  const [row, column] = active.side === "a" ? [active.item, null] : [null, active.item];
  context.globalAlpha = 0.6;
  context.fillStyle = shared.palette.paper;
  context.fillRect(x, y, right - x, bottom - y);
  context.globalAlpha = 1;
  context.clearRect(...box(row, column));
  context.strokeStyle = shared.palette.ink;
  context.lineWidth = 1.5;
  context.strokeRect(...box(row, column));
  if (active.partner === null) return;
  context.lineWidth = 3;
  context.strokeRect(...box(row ?? active.partner, column ?? active.partner));
}
