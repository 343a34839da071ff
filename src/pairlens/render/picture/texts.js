// Both texts as running text, with a span for every item that can be hovered, focused and held.

const NUMBER_WIDTH = 6.2; // pixels of a digit below a word
const NUMBER_GAP = 4; // pixels between the numbers of words that touch

function makeTexts(panel) {
  const svg = makeShape("svg", { class: "pl-links", "aria-hidden": "true" });
  const texts = { spans: { a: [], b: [] }, runs: {}, svg };
  texts.node = make("div", { className: "pl-texts" });
  texts.node.append(texts.svg);
  for (const side of "ab") {
    const run = (texts.runs[side] = writeText(panel.grid, side, texts.spans[side]));
    run.addEventListener("scroll", panel.redraw, { passive: true });
    const letter = make("span", { className: "pl-letter", "aria-hidden": "true" }, side);
    texts.node.append(make("div", { className: "pl-text" }, letter, run));
    if (panel.view[`truncated_${side}`]) {
      const warning = "Longer than the model takes: only its beginning is explained.";
      texts.node.lastChild.append(make("p", { className: "pl-warning" }, warning));
    }
  }
  const placeOf = (target) => {
    const span = target.closest(".pl-unit");
    return span && { side: span.dataset.side, item: Number(span.dataset.item), partner: null };
  };
  listen(panel, texts.node, placeOf);
  texts.node.addEventListener("keydown", (event) => {
    const here = placeOf(event.target);
    if (here && !event.ctrlKey && !event.metaKey && !event.altKey) walk(event, panel, here);
  });
  return texts;
}

// Hover, focus and click: `placeOf` returns the place of an element.
function listen(panel, node, placeOf) {
  for (const type of ["pointerover", "focusin"]) {
    node.addEventListener(type, (event) => panel.hover(placeOf(event.target)));
  }
  for (const type of ["pointerleave", "focusout"]) node.addEventListener(type, () => panel.hover(null));
  node.addEventListener("click", (event) => panel.pin(placeOf(event.target)));
}

function writeText(grid, side, spans) {
  const length = grid.view.text_a.length + grid.view.text_b.length;
  const size = length < 160 ? " pl-short" : length > 900 ? " pl-long" : "";
  const label = `Text ${side}. Arrow keys go from one ${grid.level.noun} to the next, Enter holds one.`;
  const run = make("div", { className: `pl-run${size}`, dir: "auto", role: "group", "aria-label": label });
  const items = grid.items[side];
  const home = new Map(items.flatMap((item, n) => (item.folded ? [] : item.members.map((unit) => [unit, n]))));
  const compounds = make("div", { className: "pl-compounds" });
  const put = (n, className, text, place = run) => {
    const state = { role: "button", tabIndex: spans.some(Boolean) ? -1 : 0, "aria-pressed": "false" };
    spans[n] = make("span", { className, ...state, "aria-description": describe(grid, side, n) }, ...written(text));
    Object.assign(spans[n].dataset, { side, item: n });
    const known = grid.without[side][n];
    if (known) spans[n].dataset.without = points(known);
    if (known && isSame(grid.view, known)) spans[n].classList.add("pl-same");
    // The number of a unit of several words, which may span lines, stands behind it and not below.
    if (/\S\s+\S/.test(text) && !className.includes("pl-chip")) spans[n].classList.add("pl-wide");
    place.append(spans[n]);
  };
  const pieces = grid.level[`pieces_${side}`];
  pieces.forEach(([text, unit], at) => {
    const cut = grid.view[`truncated_${side}`] && at === pieces.length - 1;
    if (unit === null) run.append(make("span", { className: cut ? "pl-cut" : "" }, ...written(text)));
    else if (!home.has(unit)) return;
    else if (text) put(home.get(unit), "pl-unit", text);
    else {
      const { text: name, kind } = grid.level[`units_${side}`][unit];
      put(home.get(unit), "pl-unit pl-chip", plain(name, 36), kind === "compound" ? compounds : run);
    }
  });
  if (items.at(-1)?.folded) put(items.length - 1, "pl-unit pl-chip", "special tokens");
  const compounded = new Set(items.flatMap((_, n) => (kindOf(grid, side, n) === "compound" ? partsOf(grid, side, n) : [])));
  for (const n of compounded) spans[n]?.classList.add("pl-part");
  if (compounds.childNodes.length) run.append(compounds);
  return run;
}

// Widen words that are narrower than the numbers below them. All widths are read before the first one changes.
function makeRoom({ spans }) {
  const numbered = [...spans.a, ...spans.b].filter((span) => span?.dataset.without && !span.matches(".pl-wide, .pl-same"));
  const narrow = numbered.filter((span) => !span.style.paddingInline);
  const missing = narrow.map((span) => {
    const { width } = span.getBoundingClientRect();
    return width && NUMBER_WIDTH * span.dataset.without.length + NUMBER_GAP - width; // a hidden picture has no widths yet
  });
  narrow.forEach((span, n) => {
    if (missing[n] > 0) span.style.paddingInline = `calc(0.14em + ${(missing[n] / 2).toFixed(1)}px)`;
  });
}

// Left and right move along the text, up and down to the strongest partner in the other text.
function walk(event, panel, { side, item }) {
  const { spans } = panel.texts;
  const row = spans[side];
  const forward = getComputedStyle(panel.texts.runs[side]).direction === "rtl" ? -1 : 1;
  const partner = () => spans[OTHER[side]][partnersOf(panel.grid, side, item)[0]?.item];
  const moves = {
    ArrowRight: () => row[item + forward],
    ArrowLeft: () => row[item - forward],
    ArrowDown: () => (side === "a" ? partner() : null),
    ArrowUp: () => (side === "b" ? partner() : null),
    Home: () => row[0],
    End: () => row.at(-1),
    Enter: () => panel.pin({ side, item, partner: null }),
    " ": () => panel.pin({ side, item, partner: null }),
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  const span = moves[event.key]();
  if (!span) return;
  for (const each of spans[span.dataset.side]) each.tabIndex = each === span ? 0 : -1;
  span.focus();
}

// Without an active item every item has the colour of the score's fall without it; otherwise items of the other text
// have the colour of their pair with the active item, and that item has the colour of its effect.
function paintTexts(panel, active) {
  const { grid, shared } = panel;
  const parts = active ? partsOf(grid, active.side, active.item) : [];
  const holds = active && kindOf(grid, active.side, active.item) === "sentence" ? "pl-inside" : "pl-with";
  panel.texts.node.classList.toggle("pl-active", Boolean(active));
  for (const side of "ab") {
    panel.texts.spans[side].forEach((span, n) => {
      const chosen = active?.side === side && active.item === n;
      const across = active && active.side !== side;
      const value = across ? grid.value(active.side, active.item, n) : chosen ? grid.effects[side][n] : active ? 0 : grid.falls[side][n];
      const share = value / (active ? shared.peak : shared.sumPeak);
      const lit = Math.abs(share) >= 0.02 && !(across && isHidden(panel, active, n, value));
      const swatch = lit ? shared.palette.shade(share) : { fill: "", ink: "" };
      const partner = across && active.partner === n;
      const held = active?.side === side && parts.includes(n);
      const classes = [across && lit && "pl-lit", chosen && "pl-chosen", partner && "pl-partner", held && holds];
      if (active && !chosen && !lit) classes.push("pl-quiet");
      dress(span, swatch, classes.filter(Boolean).join(" "), chosen && shared.pinned !== null);
    });
  }
}

// Whether a pair with the active item has no colour: it is below the threshold, or may be noise.
function isHidden({ grid, shared }, active, partner, value) {
  return Math.abs(value) < shared.state.threshold || grid.noise(active.side, active.item, partner);
}

// Most spans look the same for the next active item: only spans that change are updated.
function dress(span, { fill, ink }, classes, held) {
  const look = `${fill} ${classes} ${held}`;
  if (span.look === look) return;
  span.look = look;
  span.style.backgroundColor = fill;
  span.style.color = ink;
  const kind = ["pl-chip", "pl-part", "pl-wide", "pl-same"].filter((name) => span.classList.contains(name));
  span.className = ["pl-unit", ...kind, classes].join(" ");
  span.setAttribute("aria-pressed", String(held));
}
