// A grid is one view at one level: the items of a, the items of b, and the value of every pair of items.
// An item is a unit, or all special tokens of a text together while they are folded.

function makeAxis(units, unfold) {
  const items = [];
  const folded = [];
  units.forEach((unit, n) => {
    if (unit.kind === "special" && !unfold) folded.push(n);
    else items.push({ members: [n], text: unit.text, folded: false });
  });
  return folded.length ? [...items, { members: folded, text: "special tokens", folded: true }] : items;
}

// What the score would be without an item: measured or a forecast, or null where that is not known.
function withoutOf(level, side, item) {
  const unit = level[`units_${side}`][item.members[0]];
  return item.folded || unit.without === undefined ? null : { score: unit.without, measured: unit.measured };
}

// What the score would be without an item of each text: measured or a forecast, or null where that is not known.
function withoutBoth(grid, i, j) {
  const { view, level } = grid;
  const [a, b] = [grid.items.a[i].members[0], grid.items.b[j].members[0]];
  const known = grid.without.a[i]?.measured && grid.without.b[j]?.measured;
  if (level.without_both && known) return { score: level.without_both[a][b], measured: true };
  if (!level.predicts || !grid.without.a[i] || !grid.without.b[j]) return null;
  const rowsOf = (side, n) => {
    const [unit] = grid.items[side][n].members;
    return level[`units_${side}`][unit].removes || [unit];
  };
  const [gone, other] = [rowsOf("a", i), rowsOf("b", j)];
  const all = gone.map((n) => level.effects_a[n] + total(level.matrix[n]));
  const columns = other.map((m) => level.effects_b[m] + total(level.matrix.map((row) => row[m])));
  const twice = gone.flatMap((n) => other.map((m) => level.matrix[n][m]));
  return { score: view.score - total(all) - total(columns) + total(twice), measured: false };
}

function makeGrid(view, level, unfold) {
  const items = { a: makeAxis(level.units_a, unfold), b: makeAxis(level.units_b, unfold) };
  const sum = (table, x, y) => total(x.members.map((i) => total(y.members.map((j) => table[i][j]))));
  const build = (table) => items.a.map((x) => items.b.map((y) => sum(table, x, y)));
  const effectsOf = (side) => items[side].map((item) => total(item.members.map((n) => level[`effects_${side}`][n])));
  const values = build(level.matrix);
  const errors = level.entry_error && build(level.entry_error);
  const effects = { a: effectsOf("a"), b: effectsOf("b") };
  const mayBeNoise = (i, j) => level.sampled && errors !== null && Math.abs(values[i][j]) < 2 * errors[i][j];
  const pairs = items.a.flatMap((x, i) =>
    items.b.map((y, j) => ({ i, j, value: values[i][j], noise: mayBeNoise(i, j), folded: x.folded || y.folded })),
  );
  const single = pairs.filter((pair) => !pair.folded);
  const without = { a: items.a.map((item) => withoutOf(level, "a", item)), b: items.b.map((item) => withoutOf(level, "b", item)) };
  const own = ["a", "b"].flatMap((side) => effects[side].filter((_, n) => !items[side][n].folded));
  const sums = {
    a: items.a.map((_, i) => total(values[i]) + effects.a[i]),
    b: items.b.map((_, j) => total(values.map((row) => row[j])) + effects.b[j]),
  };
  dropSilent(items.a, (i) => values[i].every((v) => !v) && !effects.a[i]);
  dropSilent(items.b, (j) => values.every((row) => !row[j]) && !effects.b[j]);
  // How far the score falls without an item; where that is not known, what the item contributes in all.
  const fall = (side) => sums[side].map((sum, n) => (without[side][n] ? view.score - without[side][n].score : sum));
  const falls = { a: fall("a"), b: fall("b") };
  return {
    view, level, items, effects, without, sums, falls, unfold,
    hasEffects: own.some(Boolean),
    knowsWithout: [...without.a, ...without.b].some(Boolean),
    value: (side, n, m) => (side === "a" ? values[n][m] : values[m][n]),
    error: (side, n, m) => (errors ? (side === "a" ? errors[n][m] : errors[m][n]) : 0),
    noise: (side, n, m) => (side === "a" ? mayBeNoise(n, m) : mayBeNoise(m, n)),
    uncertain: Boolean(errors),
    noisy: single.some((pair) => pair.noise),
    pairs: single.sort(byStrength),
    together: total(single.map((pair) => Math.max(pair.value, 0))),
    apart: total(single.map((pair) => Math.min(pair.value, 0))),
    special: total(pairs.filter((pair) => pair.folded).map((pair) => pair.value)),
    peak: Math.max(level.floor, largest([...single.map((pair) => pair.value), ...own])),
    range: rangeOf(single.map((pair) => pair.value)),
    sumPeak: Math.max(level.floor, ...["a", "b"].map((side) => largest(falls[side].filter((_, n) => !items[side][n]?.folded)))),
  };
}

// Strong pairs first, and pairs that may be noise last.
function byStrength(x, y) {
  return x.noise - y.noise || Math.abs(y.value) - Math.abs(x.value);
}

// Drop the item of folded special tokens if all their values are zero, unless it is the only item.
function dropSilent(items, silent) {
  if (items.length > 1 && items.at(-1).folded && silent(items.length - 1)) items.pop();
}

// A score without something, with two decimals; ~ marks a forecast.
function points({ score, measured }) {
  return (measured ? "" : "~") + number(score, Math.abs(score) < 100 ? 2 : 0);
}

// Whether the score without something is the score itself, as they are shown.
function isSame(view, known) {
  return points({ ...known, measured: true }) === points({ score: view.score, measured: true });
}

// "compound", "sentence" and so on, as pairlens.text.Unit names them.
function kindOf(grid, side, item) {
  return grid.level[`units_${side}`][grid.items[side][item].members[0]].kind;
}

// The items of the other text, those with the strongest values first.
function partnersOf(grid, side, item) {
  return grid.items[OTHER[side]]
    .map((_, n) => ({
      item: n, value: grid.value(side, item, n), error: grid.error(side, item, n), noise: grid.noise(side, item, n),
    }))
    .sort(byStrength);
}

// The items that a compound or an opened sentence consists of.
function partsOf(grid, side, item) {
  const { parts = [] } = grid.level[`units_${side}`][grid.items[side][item].members[0]];
  return grid.items[side].flatMap(({ members, folded }, n) => (!folded && parts.includes(members[0]) ? [n] : []));
}

// The description of an item for screen readers: the score without it, its sum and its strongest partners.
function describe(grid, side, item) {
  const partners = partnersOf(grid, side, item)
    .slice(0, 3)
    .filter((partner) => !partner.noise && Number(partner.value.toFixed(4)))
    .map((partner) => `${plain(grid.items[OTHER[side]][partner.item].text)} ${signed(partner.value)}`);
  const most = partners.length ? `; most with ${partners.join(", ")}` : "";
  const known = grid.without[side][item];
  const without = known ? `without it ${points(known)}, ${known.measured ? "measured" : "forecast"}; ` : "";
  return `${without}${signed(grid.sums[side][item])} in all${most}`;
}
