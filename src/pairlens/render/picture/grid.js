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

function makeGrid(view, level, unfold) {
  const items = { a: makeAxis(level.units_a, unfold), b: makeAxis(level.units_b, unfold) };
  const sum = (table, x, y) => total(x.members.map((i) => total(y.members.map((j) => table[i][j]))));
  const build = (table) => items.a.map((x) => items.b.map((y) => sum(table, x, y)));
  const effectsOf = (side) => items[side].map((item) => total(item.members.map((n) => level[`effects_${side}`][n])));
  const values = build(level.matrix);
  const errors = level.entry_error && build(level.entry_error);
  const effects = { a: effectsOf("a"), b: effectsOf("b") };
  const pairs = items.a.flatMap((x, i) =>
    items.b.map((y, j) => ({ i, j, value: values[i][j], folded: x.folded || y.folded })),
  );
  const single = pairs.filter((pair) => !pair.folded);
  const sums = {
    a: items.a.map((_, i) => total(values[i]) + effects.a[i]),
    b: items.b.map((_, j) => total(values.map((row) => row[j])) + effects.b[j]),
  };
  dropSilent(items.a, (i) => values[i].every((v) => !v) && !effects.a[i]);
  dropSilent(items.b, (j) => values.every((row) => !row[j]) && !effects.b[j]);
  return {
    view, level, items, effects, sums, unfold,
    value: (side, n, m) => (side === "a" ? values[n][m] : values[m][n]),
    error: (side, n, m) => (errors ? (side === "a" ? errors[n][m] : errors[m][n]) : 0),
    uncertain: Boolean(errors),
    pairs: single.sort((x, y) => Math.abs(y.value) - Math.abs(x.value)),
    together: total(single.map((pair) => Math.max(pair.value, 0))),
    apart: total(single.map((pair) => Math.min(pair.value, 0))),
    special: total(pairs.filter((pair) => pair.folded).map((pair) => pair.value)),
    peak: largest(single.map((pair) => pair.value)),
    range: rangeOf(single.map((pair) => pair.value)),
    sumPeak: Math.max(...["a", "b"].map((side) => largest(sums[side].filter((_, n) => !items[side][n]?.folded)))),
  };
}

// Drop the item of folded special tokens if all their values are zero, unless it is the only item.
function dropSilent(items, silent) {
  if (items.length > 1 && items.at(-1).folded && silent(items.length - 1)) items.pop();
}

// The items of the other text, those with the strongest values first.
function partnersOf(grid, side, item) {
  return grid.items[OTHER[side]]
    .map((_, n) => ({ item: n, value: grid.value(side, item, n), error: grid.error(side, item, n) }))
    .sort((x, y) => Math.abs(y.value) - Math.abs(x.value));
}

// The description of an item for screen readers: its sum and its strongest partners.
function describe(grid, side, item) {
  const partners = partnersOf(grid, side, item)
    .slice(0, 3)
    .filter((partner) => Number(partner.value.toFixed(4)))
    .map((partner) => `${plain(grid.items[OTHER[side]][partner.item].text)} ${signed(partner.value)}`);
  const most = partners.length ? `; most with ${partners.join(", ")}` : "";
  return `${signed(grid.sums[side][item])} in all${most}`;
}
