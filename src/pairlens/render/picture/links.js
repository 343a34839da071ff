// The links between the texts: those of the active item, or the strongest of all if none is active.

const LINKS = 6;
const FAINTEST = 0.04; // weaker links, relative to the strongest pair, are not drawn

function linksOf(panel, active) {
  const { grid, shared } = panel;
  const least = Math.max(shared.state.threshold, FAINTEST * shared.peak);
  const isDrawn = ({ value, noise }) => !noise && Math.abs(value) >= least;
  if (!active) return grid.pairs.slice(0, panel.texts.resting).filter(isDrawn);
  return partnersOf(grid, active.side, active.item)
    .filter((partner, n) => (n < LINKS && isDrawn(partner)) || partner.item === active.partner)
    .map(({ item, value }) => ({
      i: active.side === "a" ? active.item : item,
      j: active.side === "a" ? item : active.item,
      value,
    }));
}

function paintLinks(panel, active) {
  const { texts, shared } = panel;
  for (const box of [texts.runs.a, texts.runs.b, panel.matrix.node]) {
    box.classList.toggle("pl-below", box.scrollHeight - box.scrollTop - box.clientHeight > 4);
  }
  // Without an active item, links across many lines would hide the text.
  texts.resting = texts.runs.a.clientHeight < 160 ? LINKS : 0;
  const frame = texts.node.getBoundingClientRect();
  const gap = [texts.runs.a, texts.runs.b].map((run) => run.getBoundingClientRect());
  const between = { top: gap[0].bottom - frame.top + 20, bottom: gap[1].top - frame.top - 4 };
  const paths = [];
  const numbers = [];
  for (const { i, j, value } of linksOf(panel, active)) {
    const from = anchor(texts, "a", i, frame, active);
    const to = anchor(texts, "b", j, frame, active);
    if (!from || !to) continue;
    const share = Math.min(1, Math.abs(value) / shared.peak);
    const bend = Math.max(18, (to.y - from.y) / 2);
    paths.push(
      makeShape("path", {
        class: from.seen && to.seen ? "pl-link" : "pl-link pl-away",
        d: `M${from.x} ${from.y}C${from.x} ${from.y + bend} ${to.x} ${to.y - bend} ${to.x} ${to.y}`,
        stroke: shared.palette.line(value),
        "stroke-width": 1.25 + 4.75 * share,
        "stroke-opacity": 0.35 + 0.55 * share ** GAMMA,
        "data-pair": `${i},${j}`,
      }),
    );
    const place = placeOnLink(from, to, bend, active, between, numbers);
    if (place) numbers.push({ ...place, value });
  }
  const labels = numbers.map(({ x, y, value }) => {
    const label = makeShape("text", { class: "pl-number", x, y, fill: shared.palette.line(value) });
    label.textContent = signed(value, 3);
    return label;
  });
  texts.svg.replaceChildren(...paths, ...labels);
}

// Where on its link a number is written: between the texts, near the partner of the active item, and not on another
// number; null if there is no such place.
function placeOnLink(from, to, bend, active, { top, bottom }, numbers) {
  const at = (t) => {
    const [start, end] = [(1 - t) ** 2 * (1 + 2 * t), t ** 2 * (3 - 2 * t)];
    const pull = 3 * t * (1 - t) * (1 - 2 * t) * bend;
    return { x: start * from.x + end * to.x, y: start * from.y + end * to.y + pull };
  };
  const steps = [0.5, 0.62, 0.38, 0.74, 0.26, 0.86, 0.14];
  if (active) steps.sort((t, u) => (active.side === "a" ? u - t : t - u));
  const isFree = ({ x, y }) =>
    y > top && y < bottom && !numbers.some((other) => Math.abs(other.x - x) < 48 && Math.abs(other.y - y) < 12);
  return steps.map(at).find(isFree) || null;
}

// Where a link meets an item: below it in a, above it in b, or at the edge of the box if it is scrolled out of sight.
function anchor(texts, side, item, frame, active) {
  const rects = texts.spans[side][item]?.getClientRects();
  if (!rects?.length) return null;
  const inner = rects[side === "a" ? rects.length - 1 : 0];
  // Links of a begin below the number of their word, which only the active word has while there is one.
  const span = texts.spans[side][item];
  const numbered = span.dataset.without && !span.classList.contains("pl-wide");
  const below = side === "a" && numbered && (!active || (active.side === side && active.item === item)) ? 14 : 0;
  const box = texts.runs[side].getBoundingClientRect();
  const y = side === "a" ? inner.bottom : inner.top;
  return {
    x: inner.left + inner.width / 2 - frame.left,
    y: Math.max(box.top, Math.min(box.bottom, y)) - frame.top + below,
    seen: y > box.top - 2 && y < box.bottom + 2,
  };
}
