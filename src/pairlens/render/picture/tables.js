// Numbers and legends: the active item, the strongest pairs, the equation of the score, the colours, the settings.

const LISTED = 8;
const LISTED_MORE = 40;

function paintReadout({ grid, readout, texts }, active) {
  const noun = grid.level.name;
  readout.classList.toggle("pl-hint", !active);
  if (!active) {
    const lines = texts.resting ? "The lines are the strongest pairs. " : "";
    readout.replaceChildren(`${lines}Point at a ${noun}, or tap it, to see what it goes with.`);
    return;
  }
  const { side, item, partner } = active;
  const other = OTHER[side];
  const text = (which, n) => nameOf(grid.items[which][n].text);
  const value = (v, error) => [
    make("b", { className: v < 0 ? "pl-apart" : "pl-together" }, signed(v)),
    grid.uncertain ? make("small", {}, ` ± ${bounded(grid, error)}`) : "",
  ];
  const effect = grid.effects[side][item];
  const all = [text(side, item), " ", make("b", {}, signed(grid.sums[side][item])), " in all"];
  if (effect) all.push(`, of which ${signed(effect)} with the other text’s reference`);
  if (partner !== null) {
    const [i, j] = side === "a" ? [item, partner] : [partner, item];
    const pair = [text("a", i), " with ", text("b", j), " ", ...value(grid.value("a", i, j), grid.error("a", i, j))];
    readout.replaceChildren(make("span", { className: "pl-pair" }, ...pair), make("br"), ...all);
    return;
  }
  const most = partnersOf(grid, side, item).slice(0, 3).filter((entry) => Number(entry.value.toFixed(4)));
  const list = most.flatMap((entry, n) => [
    n ? ", " : "Most with ", text(other, entry.item), " ", ...value(entry.value, entry.error),
  ]);
  readout.replaceChildren(make("span", { className: "pl-pair" }, ...all), make("br"), ...list);
}

// At a coarser level than that of the explanation, errors are upper bounds.
function bounded(grid, error) {
  return (grid.level === grid.view.levels[0] ? "" : "≤\u2009") + number(error);
}

// The strongest pairs. Screen readers read this table instead of the matrix.

function makePairs(panel) {
  const head = make("tr", {}, make("th", { scope: "col" }, "a · b"));
  head.append(make("th", { scope: "col", className: "pl-right" }, "contribution"));
  if (panel.grid.uncertain) {
    const meaning = panel.grid.level.error_name;
    const sign = { scope: "col", className: "pl-right pl-error", title: meaning, "aria-label": meaning };
    head.append(make("th", sign, "±"));
  }
  head.append(make("td", { className: "pl-track" }));
  const body = make("tbody");
  const caption = make("caption", { className: "pl-hidden" }, "Strongest pairs");
  const table = make("table", {}, caption, make("thead", {}, head), body);
  const note = make("p", { className: "pl-note" });
  const more = make("button", { type: "button", className: "pl-more" });
  const pairs = { node: make("div", { className: "pl-pairs" }, table, note, more), body, note, more, count: LISTED };
  more.addEventListener("click", () => {
    pairs.count = pairs.count === LISTED ? LISTED_MORE : LISTED;
    listPairs(panel);
  });
  listen(panel, body, (target) => {
    const row = target.closest("tr");
    return { side: "a", item: Number(row.dataset.i), partner: Number(row.dataset.j) };
  });
  return pairs;
}

function listPairs({ grid, pairs, shared }) {
  const over = grid.pairs.filter((pair) => Math.abs(pair.value) >= shared.state.threshold);
  const rows = over.slice(0, pairs.count).map(({ i, j, value }) => {
    const words = [nameOf(grid.items.a[i].text, 28), " · ", nameOf(grid.items.b[j].text, 28)];
    const row = make("tr", {}, make("th", { scope: "row" }, make("button", { type: "button" }, ...words)));
    row.append(make("td", { className: "pl-right" }, signed(value)));
    const error = bounded(grid, grid.error("a", i, j));
    if (grid.uncertain) row.append(make("td", { className: "pl-right pl-error" }, error));
    row.append(make("td", { className: "pl-track" }, makeBar(0, value, shared.range, value)));
    Object.assign(row.dataset, { i, j });
    return row;
  });
  pairs.body.replaceChildren(...rows);
  const hidden = grid.pairs.slice(over.length).map((pair) => pair.value);
  const below = `Below the threshold: ${hidden.length} of ${grid.pairs.length} pairs, ${signed(total(hidden))} in all.`;
  pairs.note.textContent = hidden.length ? below : "";
  pairs.more.textContent = pairs.count === LISTED ? "More pairs" : "Fewer pairs";
  pairs.more.hidden = over.length <= LISTED;
}

// A bar from one value to another on an axis, in the colour of `sign`, or grey if that is null.
function makeBar(from, to, [low, high], sign) {
  const percent = (value) => `${(100 * value) / (high - low || 1)}%`;
  const fill = make("i", { className: "pl-bar" + (sign === null ? "" : sign < 0 ? " pl-minus" : " pl-plus") });
  fill.style.left = percent(Math.min(from, to) - low);
  fill.style.width = percent(Math.abs(to - from));
  const zero = make("i", { className: "pl-zero" });
  zero.style.left = percent(-low);
  return make("span", { className: "pl-bars", "aria-hidden": "true" }, zero, fill);
}

// The terms of the score. The bar of each begins where the sum of the terms before it ends.
function termsOf(grid) {
  const { view, level } = grid;
  const [a, b] = [total(grid.effects.a), total(grid.effects.b)];
  const units = [...level.units_a, ...level.units_b];
  const special = new Set(units.filter((unit) => unit.kind === "special").map((unit) => unit.text));
  const terms = [["base", view.base, null, "the references’ own share"]];
  if (a || b) {
    terms.push(["effects of a", a, a, "with b’s reference"]);
    terms.push(["effects of b", b, b, "with a’s reference"]);
  }
  terms.push(["pairs together", grid.together, 1, "all that add"]);
  terms.push(["pairs apart", grid.apart, -1, "all that take away"]);
  if (special.size && !grid.unfold) {
    terms.push(["special tokens", grid.special, grid.special, plain([...special].join(" "))]);
  }
  terms.push(["gap", view.gap, null, "what the sum misses"]);
  let sum = 0;
  const steps = terms.map(([label, value, sign, note]) => {
    const from = sum;
    sum += value;
    return { label, value, sign, note, from, to: sum };
  });
  return [...steps, { label: "score", value: view.score, sign: null, note: "", from: 0, to: view.score }];
}

function makeEquation({ grid, shared }) {
  const rows = termsOf(grid).map(({ label, value, sign, note, from, to }) => {
    const write = label === "gap" ? tiny : label === "score" ? number : signed;
    const head = make("th", { scope: "row" }, label, " ", make("small", {}, note));
    const row = make("tr", {}, head, make("td", { className: "pl-right" }, write(value)));
    row.append(make("td", { className: "pl-track" }, makeBar(from, to, shared.sumRange, sign)));
    row.dataset.term = label;
    return row;
  });
  const caption = make("caption", { className: "pl-hidden" }, "The terms that add up to the score");
  return make("table", { className: "pl-equation" }, caption, make("tbody", {}, ...rows));
}

function paintLegend({ legend, shared }) {
  const stops = Array.from({ length: 41 }, (_, n) => shared.palette.shade(n / 20 - 1).fill);
  legend.querySelector(".pl-strip").style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
}

function makeLegend({ grid, shared }) {
  const strip = make("div", { className: "pl-strip" });
  const line = (...words) => make("div", { className: "pl-scale" }, ...words.map((word) => make("span", {}, word)));
  const scale = (label, peak) => line(signed(-peak, 3), label, signed(peak, 3));
  return make(
    "div", { className: "pl-legend" }, line("apart", "0", "together"), strip,
    scale("one pair", shared.peak), scale(`one ${grid.level.name}, all its pairs`, shared.sumPeak),
  );
}

function makeProvenance({ view, level }) {
  const settings = { ...view.settings, "gap of a": tiny(view.gap_a), "gap of b": tiny(view.gap_b) };
  const list = Object.entries(settings).flatMap(([key, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return value === null ? [] : [make("dt", {}, key), make("dd", {}, plain(text, 400))];
  });
  const line = make("summary", {}, plain(level.provenance, 200));
  return make("details", { className: "pl-provenance" }, line, make("dl", {}, ...list));
}
