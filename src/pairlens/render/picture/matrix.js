// The matrix on two canvases: the cells, drawn once, and above them the marks of the active row, column and cell. The
// effects, where there are any, are a strip beside the cells and one below them, in the same colours.

const LABEL_FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
const CELL = { least: 4, labelled: 11, numbered: 44, gap: 7, widest: 80, highest: 36, page: 460 };
const LONGEST = 120; // pixels of a label

function makeMatrix(panel) {
  const { a, b } = panel.grid.items;
  const label = `${a.length} by ${b.length}: a down, b across. The texts and the table of pairs hold its numbers.`;
  const cells = make("canvas", { role: "img", "aria-label": label });
  const marks = make("canvas", { className: "pl-marks", "aria-hidden": "true" });
  const stack = make("div", { className: "pl-stack" }, cells, marks);
  const node = make("div", { className: "pl-matrix", tabIndex: 0, role: "group", "aria-label": "Matrix" }, stack);
  node.addEventListener("scroll", panel.redraw, { passive: true });
  const matrix = { node, cells, marks, layout: null };
  const placeOf = (event) => {
    const place = placeAt(matrix.layout, event.offsetX, event.offsetY);
    marks.classList.toggle("pl-cell", place !== null);
    return place;
  };
  marks.addEventListener("pointermove", (event) => panel.hover(placeOf(event)));
  marks.addEventListener("pointerleave", () => panel.hover(null));
  marks.addEventListener("click", (event) => panel.pin(placeOf(event)));
  return matrix;
}

// The layout for a width in pixels. As cells get narrower, column labels are horizontal, then slanted, then vertical, then
// left out with the row labels; at the least cell size the matrix scrolls, except on paper.
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
  const plans = [
    { turn: 0, w: fit(head, 0), least: label + 8, x: head, y: 22, extra: 0 },
    { turn: -Math.PI / 4, w: fit(head, slope), least: 18, x: head, y: slope + 12, extra: slope },
    { turn: -Math.PI / 2, w: fit(head, 0), least: CELL.labelled, x: head, y: label + 12, extra: 0 },
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

// The cell, row or column at a point of the canvas.
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
  const context = prepare(matrix.cells, layout);
  prepare(matrix.marks, layout);
  const { a, b } = grid.items;
  for (let i = 0; i < layout.rows.length; i += 1) {
    for (let j = 0; j < layout.columns.length; j += 1) {
      if (i < a.length && j < b.length) drawCell(context, shared, layout, i, j, grid.value("a", i, j));
      else if (i < a.length) drawCell(context, shared, layout, i, j, grid.effects.a[i]);
      else if (j < b.length) drawCell(context, shared, layout, i, j, grid.effects.b[j]);
    }
  }
  if (layout.turn === null) return;
  context.fillStyle = shared.palette.faint;
  context.textAlign = "left";
  context.fillText("a ↓ b →", 0, layout.y - 11);
  const colour = (labels, n) => (context.fillStyle = n < labels.length - layout.strip ? shared.palette.ink : shared.palette.faint);
  layout.rows.forEach((_, i) => colour(layout.rows, i) && drawRowLabel(context, layout, i));
  layout.columns.forEach((_, j) => colour(layout.columns, j) && drawColumnLabel(context, layout, j));
}

function drawCell(context, shared, { lefts, tops, w, h }, i, j, value) {
  const seam = w >= 9 ? 1 : 0;
  const shown = Math.abs(value) >= shared.state.threshold;
  const swatch = shared.palette.shade(shown ? value / shared.peak : 0);
  context.fillStyle = swatch.fill;
  context.fillRect(lefts[j], tops[i], w - seam, h - seam);
  if (w < CELL.numbered || !shown || !Number(value.toFixed(2))) return;
  context.fillStyle = swatch.ink;
  context.fillText(signed(value, 2).replace("0.", "."), lefts[j] + 0.5 * w, tops[i] + 0.5 * h);
}

function prepare(canvas, layout) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.ceil(layout.width * ratio);
  canvas.height = Math.ceil(layout.height * ratio);
  canvas.style.width = `${canvas.width / ratio}px`;
  canvas.style.height = `${canvas.height / ratio}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  context.textAlign = "center";
  return context;
}

function drawRowLabel(context, { rows, tops, x, h }, i) {
  context.textAlign = "right";
  context.fillText(shorten(context, rows[i], x - 8), x - 7, tops[i] + 0.5 * h);
}

function drawColumnLabel(context, { columns, lefts, turn, y, w }, j) {
  context.save();
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
  context.clearRect(0, 0, width + 1, height + 1);
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
