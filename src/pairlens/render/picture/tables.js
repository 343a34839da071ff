// Numbers and legends: the active item, the strongest pairs, the equation of the score, the colours, the settings.

const LISTED = 8;
const LISTED_MORE = 40;
const NOISE = "less than two standard errors from zero: may be noise";

function paintReadout({ grid, readout, texts }, active) {
  readout.classList.toggle("pl-hint", !active);
  if (!active) readout.replaceChildren(...hintOf(grid, texts));
  else if (active.partner === null) readout.replaceChildren(...aboutItem(grid, active));
  else readout.replaceChildren(...aboutPair(grid, active.side === "a" ? active : turned(active)));
}

function turned({ item, partner }) {
  return { item: partner, partner: item };
}

function hintOf(grid, texts) {
  const { noun } = grid.level;
  const lines = texts.linked ? "The lines join strong pairs. " : "";
  const known = [...grid.without.a, ...grid.without.b].filter(Boolean);
  const forecasts = known.filter(({ measured }) => !measured).length;
  const how = !forecasts ? "measured" : forecasts < known.length ? "~ if that is a forecast" : "a forecast";
  const same = known.some((each) => isSame(grid.view, each)) ? `; a ${noun} without a number hardly changes it` : "";
  const below = `The number at a ${noun} is the score without it, ${how}${same}. `;
  const other = grid.level.predicts ? ", then one of the other text, to see what both do" : ", to see what it goes with";
  return [`${lines}${grid.knowsWithout ? below : ""}Point at a ${noun}, or tap it${other}.`];
}

function valueOf(grid, value, error) {
  return [
    make("b", { className: value < 0 ? "pl-apart" : "pl-together" }, signed(value)),
    grid.uncertain ? make("small", {}, ` ± ${bounded(grid, error)}`) : "",
  ];
}

// "without guitar the score would be 0.52 (measured), 0.02 lower"
function aboutWithout(grid, names, known) {
  const change = known.score - grid.view.score;
  const how = Number(change.toFixed(2)) ? `, ${number(Math.abs(change), 2)} ${change < 0 ? "lower" : "higher"}` : ", as now";
  const score = make("b", {}, number(known.score, Math.abs(known.score) < 100 ? 2 : 0));
  return ["Without ", ...names, " the score would be ", score, ` (${known.measured ? "measured" : "forecast"})${how}`];
}

function aboutItem(grid, { side, item }) {
  const other = OTHER[side];
  const name = () => nameOf(grid.items[side][item].text);
  const known = grid.without[side][item];
  const beyond = kindOf(grid, side, item) === "sentence" ? "Beyond its single words" : "";
  const all = [known ? `${beyond || "In all"} ` : name(), known ? "" : " ", make("b", {}, signed(grid.sums[side][item])), known ? "" : " in all"];
  const settled = partnersOf(grid, side, item).filter((entry) => !entry.noise && Number(entry.value.toFixed(4)));
  const most = settled.slice(0, 3);
  const list = most.flatMap((entry, n) => [
    n ? ", " : "most with ", nameOf(grid.items[other][entry.item].text), " ", ...valueOf(grid, entry.value, entry.error),
  ]);
  const first = known ? aboutWithout(grid, [name()], known) : all;
  const lines = [make("span", { className: "pl-pair" }, ...first), make("br")];
  if (!grid.hasEffects) return [...lines, ...(known ? [...all, list.length ? "; " : ""] : []), ...list];
  const effect = grid.effects[side][item];
  const together = grid.sums[side][item] - effect;
  const parts = [beyond ? `${beyond}: by itself ` : "By itself ", ...valueOf(grid, effect, null).slice(0, 1), ", with the other text "];
  return [...lines, ...parts, ...valueOf(grid, together, null).slice(0, 1), list.length ? ": " : "", ...list];
}

function aboutPair(grid, { item: i, partner: j }) {
  const name = (side, n) => nameOf(grid.items[side][n].text);
  const both = withoutBoth(grid, i, j);
  const pair = [name("a", i), " with ", name("b", j), " ", ...valueOf(grid, grid.value("a", i, j), grid.error("a", i, j))];
  const lines = [make("span", { className: "pl-pair" }, ...pair), make("br")];
  const alone = [["a", i], ["b", j]].flatMap(([side, n]) => {
    const known = grid.without[side][n];
    return known ? ["; without ", name(side, n), ` ${points(known)}`] : [];
  });
  if (both) return [...lines, ...aboutWithout(grid, ["both"], both), ...alone];
  const sums = [["a", i], ["b", j]].map(([side, n]) => [name(side, n), ` ${signed(grid.sums[side][n])} in all`]);
  return [...lines, ...sums[0], ", ", ...sums[1], ...alone];
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
  const settled = over.filter((pair) => !pair.noise);
  const listed = pairs.count === LISTED ? settled.slice(0, LISTED) : over.slice(0, LISTED_MORE);
  const rows = listed.map(({ i, j, value, noise }) => {
    const words = [nameOf(grid.items.a[i].text, 28), " · ", nameOf(grid.items.b[j].text, 28)];
    const row = make("tr", noise ? { className: "pl-noise", title: NOISE } : {}, make("th", { scope: "row" }, make("button", { type: "button" }, ...words)));
    row.append(make("td", { className: "pl-right" }, signed(value)));
    const error = bounded(grid, grid.error("a", i, j));
    if (grid.uncertain) row.append(make("td", { className: "pl-right pl-error" }, error));
    row.append(make("td", { className: "pl-track" }, makeBar(0, value, shared.range, value)));
    Object.assign(row.dataset, { i, j });
    return row;
  });
  pairs.body.replaceChildren(...rows);
  const hidden = grid.pairs.filter((pair) => Math.abs(pair.value) < shared.state.threshold).map((pair) => pair.value);
  const below = `Below the threshold: ${hidden.length} of ${grid.pairs.length} pairs, ${signed(total(hidden))} in all.`;
  const faint = `Faint: ${NOISE}.`;
  pairs.note.textContent = [hidden.length && below, listed.some((pair) => pair.noise) && faint].filter(Boolean).join(" ");
  pairs.more.textContent = pairs.count === LISTED ? "More pairs" : "Fewer pairs";
  pairs.more.hidden = over.length <= Math.min(LISTED, settled.length);
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

// The terms of the score. The bar of each begins where the sum of the terms before it ends; the numbers add up.
function termsOf(grid) {
  const { view, level } = grid;
  const [a, b] = [total(grid.effects.a), total(grid.effects.b)];
  const units = [...level.units_a, ...level.units_b];
  const special = new Set(units.filter((unit) => unit.kind === "special").map((unit) => unit.text));
  const terms = [["base", view.base, null, "what the texts share whatever the words"]];
  if (a || b) {
    terms.push(["effects of a", a, a, "what its words do by themselves"]);
    terms.push(["effects of b", b, b, "what its words do by themselves"]);
  }
  terms.push(["pairs together", grid.together, 1, "what two words do together, all that add"]);
  terms.push(["pairs apart", grid.apart, -1, "what two words do together, all that take away"]);
  if (special.size && !grid.unfold && (grid.special || !grid.hasEffects)) {
    terms.push(["special tokens", grid.special, grid.special, plain([...special].join(" "))]);
  }
  const shown = addUp(terms.map(([, value]) => value), view.score - Number(view.gap.toExponential(0))).map((v) => signed(v));
  if (view.has_gap) {
    terms.push(["gap", view.gap, null, "what the sum misses"]);
    shown.push(tiny(view.gap));
  }
  let sum = 0;
  const steps = terms.map(([label, value, sign, note], n) => {
    const from = sum;
    sum += value;
    return { label, text: shown[n], sign, note, from, to: sum };
  });
  return [...steps, { label: "score", text: number(view.score), sign: null, note: "", from: 0, to: view.score }];
}

function makeEquation({ grid, shared }) {
  const rows = termsOf(grid).map(({ label, text, sign, note, from, to }) => {
    const head = make("th", { scope: "row" }, label, " ", make("small", {}, note));
    const row = make("tr", {}, head, make("td", { className: "pl-right" }, text));
    row.append(make("td", { className: "pl-track" }, makeBar(from, to, shared.sumRange, sign)));
    row.dataset.term = label;
    return row;
  });
  const caption = make("caption", { className: "pl-hidden" }, "The terms that add up to the score");
  return make("table", { className: "pl-equation" }, caption, make("tbody", {}, ...rows));
}

// The legend of one panel, or of all panels side by side, which have one scale.
function makeLegend({ peak, sumPeak }, grids) {
  const strip = make("div", { className: "pl-strip" });
  const line = (...words) => make("div", { className: "pl-scale" }, ...words.map((word) => make("span", {}, word)));
  const scale = (label, peak) => line(signed(-peak, 3), label, signed(peak, 3));
  const [has, knows] = [grids.some((grid) => grid.hasEffects), grids.some((grid) => grid.knowsWithout)];
  const { noun } = grids[0].level;
  return make(
    "div", { className: "pl-legend" }, line("apart", "0", "together"), strip,
    scale(has ? "one pair or effect" : "one pair", peak),
    scale(knows ? `losing one ${noun}` : `one ${noun}, all its pairs`, sumPeak),
  );
}

// The colours of all legends, which change with the theme.
function paintLegends({ root, palette }) {
  const stops = Array.from({ length: 41 }, (_, n) => palette.shade(n / 20 - 1).fill);
  for (const strip of root.querySelectorAll(".pl-strip")) {
    strip.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
  }
}

function makeForecast({ level }) {
  const className = level.poor ? "pl-forecast pl-apart" : "pl-forecast";
  return level.forecast ? [make("p", { className }, level.forecast)] : [];
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
