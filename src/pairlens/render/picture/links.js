// The links between the texts: those of the active item, or the strongest of all if none is active.

const LINKS = 6;
const FAINTEST = 0.04; // weaker links, relative to the strongest pair, are not drawn

function linksOf(panel, active) {
  const { grid, shared } = panel;
  const least = Math.max(shared.state.threshold, FAINTEST * shared.peak);
  if (!active) return grid.pairs.slice(0, panel.texts.resting).filter((pair) => Math.abs(pair.value) >= least);
  return partnersOf(grid, active.side, active.item)
    .filter(({ item, value }, n) => (n < LINKS && Math.abs(value) >= least) || item === active.partner)
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
    // The number goes to the outer side of the partner, or onto the link where there is a number below every word;
    // unless another number is there.
    const end = active?.side === "b" ? from : to;
    const onLink = !active && panel.grid.knowsWithout;
    const { x, y } = onLink ? { x: (from.x + 7 * to.x) / 8, y: to.y - bend * 0.45 } : end.outside;
    if (onLink && y > texts.runs.b.getBoundingClientRect().top - frame.top) continue; // behind the words of b
    const taken = numbers.some((other) => Math.abs(other.x - x) < 48 && Math.abs(other.y - y) < 12);
    if (end.seen && !taken) numbers.push({ x, y, value });
  }
  const labels = numbers.map(({ x, y, value }) => {
    const label = makeShape("text", { class: "pl-number", x, y, fill: shared.palette.line(value) });
    label.textContent = signed(value, 3);
    return label;
  });
  texts.svg.replaceChildren(...paths, ...labels);
}

// Where a link meets an item: below it in a, above it in b, or at the edge of the box if it is scrolled out of sight.
function anchor(texts, side, item, frame, active) {
  const rects = texts.spans[side][item]?.getClientRects();
  if (!rects?.length) return null;
  const [first, last] = [rects[0], rects[rects.length - 1]];
  const [inner, outer] = side === "a" ? [last, first] : [first, last];
  // Links of a begin below the number of their word, which only the active word has while there is one.
  const span = texts.spans[side][item];
  const numbered = span.dataset.without && !span.classList.contains("pl-wide");
  const below = side === "a" && numbered && (!active || (active.side === side && active.item === item)) ? 14 : 0;
  const box = texts.runs[side].getBoundingClientRect();
  const y = side === "a" ? inner.bottom : inner.top;
  const middle = (rect) => rect.left + rect.width / 2 - frame.left;
  const inside = Math.max(box.top, Math.min(box.bottom, y));
  return {
    x: middle(inner),
    y: inside - frame.top + below,
    outside: { x: middle(outer), y: (side === "a" ? outer.top - 4 : outer.bottom + 11) - frame.top },
    seen: Math.abs(inside - y) < 2,
  };
}
