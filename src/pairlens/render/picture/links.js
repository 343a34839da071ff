// The links between the texts: those of the active item, or the strongest of all if none is active.

const LINKS = 6;
const FAINTEST = 0.04; // weaker links, relative to the strongest pair, are not drawn
const MOST_CROSSED = 160; // pixels of text behind which a link runs while no item is active

function linksOf(panel, active) {
  const { grid, shared } = panel;
  const least = Math.max(shared.state.threshold, FAINTEST * shared.peak);
  const isDrawn = ({ value, noise }) => !noise && Math.abs(value) >= least;
  if (!active) return grid.pairs.slice(0, LINKS).filter(isDrawn);
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
    box.classList.toggle("pl-beyond", box.scrollWidth - box.scrollLeft - box.clientWidth > 4);
  }
  const frame = texts.node.getBoundingClientRect();
  const edges = { a: texts.runs.a.getBoundingClientRect().bottom - frame.top, b: texts.runs.b.getBoundingClientRect().top - frame.top };
  const between = { top: edges.a + 20, bottom: edges.b - 4 };
  const paths = [];
  const numbers = [];
  for (const { i, j, value } of linksOf(panel, active)) {
    const from = anchor(texts, "a", i, frame, active);
    const to = anchor(texts, "b", j, frame, active);
    if (!from || !to) continue;
    // Without an active item, links across many lines would hide the text.
    if (!active && edges.a - from.y + to.y - edges.b > MOST_CROSSED) continue;
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
    if (place) numbers.push({ ...place, value, pair: `${i},${j}` });
  }
  if (!active) texts.linked = paths.length > 0;
  const labels = numbers.map(({ x, y, value, pair }) => {
    const label = makeShape("text", { class: "pl-number", x, y, fill: shared.palette.line(value), "data-pair": pair });
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
    y > top && y < bottom && !numbers.some((other) => Math.abs(other.x - x) < 54 && Math.abs(other.y - y) < 12);
  return steps.map(at).find(isFree) || null;
}

// Where a link meets an item: below it in a, above it in b, or at the edge of the box if it is scrolled out of sight.
function anchor(texts, side, item, frame, active) {
  const rects = texts.spans[side][item]?.getClientRects();
  if (!rects?.length) return null;
  const inner = rects[side === "a" ? rects.length - 1 : 0];
  // Links of a begin below the number of their word, which only the active word has while there is one.
  const span = texts.spans[side][item];
  const numbered = active ? active.side === side && active.item === item : !span.classList.contains("pl-same");
  const below = side === "a" && numbered && span.dataset.without && !span.classList.contains("pl-wide") ? 14 : 0;
  const box = texts.runs[side].getBoundingClientRect();
  const y = side === "a" ? inner.bottom : inner.top;
  return {
    x: inner.left + inner.width / 2 - frame.left,
    y: Math.max(box.top, Math.min(box.bottom, y)) - frame.top + below,
    seen: y > box.top - 2 && y < box.bottom + 2,
  };
}
