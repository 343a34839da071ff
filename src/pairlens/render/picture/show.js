// The entry point: the state and the colour scale that all panels share, and a panel for every view that is shown.

function makePanel(shared, view) {
  const grid = shared.gridOf(view);
  const panel = { shared, view, grid };
  panel.hover = (place) => shared.hover(place && { ...place, panel });
  panel.pin = (place) => shared.pin(place && { ...place, panel });
  panel.redraw = () => paintLinks(panel, shared.activeIn(panel));
  panel.texts = makeTexts(panel);
  panel.matrix = makeMatrix(panel);
  panel.pairs = makePairs(panel);
  panel.readout = make("p", { className: "pl-readout" });
  const what = view.settings.measure === "dot" ? "dot product" : "cosine similarity";
  const model = String(view.settings.model || "").replace(/\/+$/, "").split("/").pop();
  const score = make("p", { className: "pl-score" }, make("output", {}, number(view.score)));
  score.append(make("span", {}, model ? `${what}, says ${plain(model)}` : what));
  if (shared.many) score.prepend(nameOf(view.label));
  const said = make("p", { className: "pl-said" }, grid.level.headline.replace(/(?<=[( ])-(?=\d)/g, "−"));
  const remark = view.unknown ? [make("p", { className: "pl-warning" }, ...written(view.unknown))] : [];
  const section = (title, ...content) => make("section", {}, make("h2", {}, title), ...content);
  const left = make("div", {}, make("section", {}, score, said, ...remark, panel.texts.node, panel.readout));
  left.append(section("What the score is made of", makeEquation(panel)));
  const right = make("div", {}, section("Every pair", panel.matrix.node, ...(shared.arrange === "side" ? [] : [makeLegend(shared, [grid])])));
  right.append(section("Strongest pairs", panel.pairs.node));
  const columns = make("div", { className: "pl-columns" }, left, right);
  panel.node = make("article", { className: "pl-panel" }, columns, ...makeForecast(grid), makeProvenance(grid));
  return panel;
}

// Links first: they read positions, which forces a new layout once anything else has changed.
function paint(panel) {
  const active = panel.shared.activeIn(panel);
  paintLinks(panel, active);
  paintTexts(panel, active);
  paintMatrix(panel, active);
  paintReadout(panel, active);
}

function refresh(panel) {
  panel.width = panel.matrix.node.clientWidth;
  makeRoom(panel.texts);
  drawMatrix(panel);
  listPairs(panel);
  paint(panel);
}

// What all panels share: the payload, the state of the controls, and the hovered and the held item.
function makeShared(payload, options) {
  const levels = Object.keys(LEVELS).filter((name) => payload.views.some((v) => v.levels.some((l) => l.name === name)));
  const shared = {
    payload, options, levels, many: payload.views.length > 1, grids: new Map(), panels: [], hovered: null, pinned: null,
    state: {
      level: levels.includes(options.level) ? options.level : payload.views[0].levels[0].name,
      special: Boolean(options.special),
      threshold: Math.max(0, Number(options.threshold) || 0),
      view: Math.min(Math.max(0, Math.trunc(options.view) || 0), payload.views.length - 1),
    },
    frame: 0,
  };
  shared.arrange = shared.many ? options.arrange || "slider" : "one";
  shared.root = make("div", { className: `pairlens pl-as-${shared.arrange}` });
  shared.body = make("div", { className: "pl-body" });
  shared.live = make("p", { className: "pl-hidden", role: "status" });
  shared.gridOf = (view) => gridOf(shared, view);
  shared.activeIn = (panel) => activeIn(shared, panel);
  shared.hover = (place) => {
    if (place === shared.hovered) return;
    shared.hovered = place;
    schedule(shared);
  };
  shared.pin = (place) => pin(shared, place);
  shared.set = (changes) => {
    Object.assign(shared.state, changes);
    if ("threshold" in changes) shared.panels.forEach(refresh);
    else build(shared);
    shared.syncThreshold();
    options.onChange?.({ ...shared.state, label: payload.views[shared.state.view].label });
  };
  return shared;
}

function gridOf(shared, view) {
  const { level, special } = shared.state;
  const key = [shared.payload.views.indexOf(view), level, special].join();
  const data = view.levels.find(({ name }) => name === level) || view.levels[0];
  if (!shared.grids.has(key)) shared.grids.set(key, makeGrid(view, data, special));
  return shared.grids.get(key);
}

// One scale for all views: for the colours of pairs and of sums, and for the bars of pairs and of the equation.
function measure(shared) {
  const all = shared.payload.views.map(shared.gridOf);
  shared.peak = largest(all.map((grid) => grid.peak)) || 1;
  shared.sumPeak = largest(all.map((grid) => grid.sumPeak)) || 1;
  // The longest bar of a pair is as long as its colour is strong.
  const strongest = rangeOf(all.flatMap((grid) => grid.range));
  shared.range = strongest.map((end) => (end * shared.peak) / (largest(strongest) || 1));
  shared.sumRange = rangeOf(all.flatMap((grid) => termsOf(grid).flatMap((step) => [step.from, step.to])));
  shared.state.threshold = Math.min(shared.state.threshold, shared.peak);
}

// The active item of a panel: the held item, or else the hovered one, if the panel has it too. While an item is held,
// hovering over the other text chooses its partner.
function activeIn({ pinned, hovered }, panel) {
  const source = pinned || hovered;
  if (!source || !sameItem(source, panel, source.side, source.item)) return null;
  const probed = pinned && hovered?.panel === source.panel && hovered.side !== source.side;
  const partner = probed ? hovered.item : source.partner;
  const known = partner !== null && sameItem(source, panel, OTHER[source.side], partner);
  return { side: source.side, item: source.item, partner: known ? partner : null };
}

function sameItem(place, panel, side, item) {
  const theirs = place.panel.grid.items[side][item];
  return panel === place.panel || (theirs && theirs.text === panel.grid.items[side][item]?.text);
}

function schedule(shared) {
  shared.frame ||= requestAnimationFrame(() => {
    shared.frame = 0;
    shared.panels.forEach(paint);
  });
}

// Hold a place. The same place again, or null, releases it; a word of the other text joins the word that is held.
function pin(shared, chosen) {
  const old = shared.pinned;
  const joins = chosen && old?.panel === chosen.panel && chosen.partner === null && chosen.side !== old.side;
  const place = joins ? { ...old, partner: chosen.item } : chosen;
  const again = place && old && ["panel", "side", "item", "partner"].every((key) => place[key] === old[key]);
  shared.pinned = again ? null : place;
  const said = place && `Held: ${heldOf(place)}`;
  shared.live.textContent = shared.pinned ? said : old ? "Released" : "";
  schedule(shared);
}

function heldOf({ panel: { grid }, side, item, partner }) {
  const first = plain(grid.items[side][item].text);
  return partner === null ? first : `${first} with ${plain(grid.items[OTHER[side]][partner].text)}`;
}

// Build all panels. A held item stays held if the new panels have it.
function build(shared) {
  const { payload, pinned: held, resized } = shared;
  measure(shared);
  const views = shared.arrange === "side" ? payload.views : [payload.views[shared.state.view]];
  shared.panels = views.map((view) => makePanel(shared, view));
  const heir = held && shared.panels.find((panel) => sameItem(held, panel, held.side, held.item));
  shared.hovered = null;
  shared.pinned = heir ? { ...held, partner: null, panel: heir } : null;
  shared.body.replaceChildren(...shared.panels.map((panel) => panel.node));
  if (shared.arrange === "side") shared.body.prepend(makeLegend(shared, shared.panels.map(({ grid }) => grid)));
  resized.disconnect();
  for (const panel of shared.panels) {
    refresh(panel);
    resized.observe(panel.matrix.node);
    resized.observe(panel.texts.node);
  }
  paintLegends(shared);
  shared.syncView?.();
  const { a, b } = shared.panels[0].grid.items;
  shared.live.textContent = `${LEVELS[shared.state.level]}: ${a.length} by ${b.length}`;
}

function resize(panel) {
  if (panel.width === panel.matrix.node.clientWidth) panel.redraw();
  else refresh(panel);
}

// Light or dark: data-theme of the root element, else the preference of the reader; paper is light.
function watchTheme(shared, signal) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  const apply = () => {
    const chosen = document.documentElement.dataset.theme;
    const preferred = dark.matches ? "dark" : "light";
    shared.paper = paper.matches;
    shared.theme = shared.paper ? "light" : ["light", "dark"].includes(chosen) ? chosen : preferred;
    shared.root.dataset.theme = shared.theme;
    shared.palette = readPalette(shared.root);
    shared.syncTheme();
    shared.panels.forEach(refresh);
    paintLegends(shared);
  };
  for (const media of [dark, paper]) media.addEventListener("change", apply, { signal });
  const observer = new MutationObserver(apply);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  signal.addEventListener("abort", () => observer.disconnect());
  apply();
}

// Show a payload in an element. Options: arrange ("slider", "side", "list"), level, special, threshold, view, title,
// and onChange, which is called with the state whenever the reader changes it.
function show(element, payload, options = {}) {
  const shared = makeShared(payload, options);
  const { root } = shared;
  const ending = new AbortController();
  shared.resized = new ResizeObserver(() => shared.panels.forEach(resize));
  // Three views fit into one row; other numbers are shown in rows of two.
  root.style.setProperty("--pl-least", payload.views.length === 3 ? "22rem" : "30rem");
  root.append(makeHead(options.title), makeControls(shared));
  if (shared.arrange === "slider") root.append(makeSlider(shared));
  if (shared.arrange === "list") root.append(makeList(shared));
  root.append(shared.body, shared.live);
  element.replaceChildren(root);
  watchTheme(shared, ending.signal);
  foldOnPhones(root.querySelector(".pl-fold"), ending.signal);
  build(shared);
  shared.syncThreshold();
  const release = (event) => event.key === "Escape" && shared.pinned && shared.pin(null);
  document.addEventListener("keydown", release, { signal: ending.signal });
  return {
    destroy() {
      ending.abort();
      shared.resized.disconnect();
      cancelAnimationFrame(shared.frame);
      root.remove();
    },
  };
}

function makeHead(title) {
  const blue = make("b", { className: "pl-together" }, "Blue");
  const orange = make("b", { className: "pl-apart" }, "orange");
  const how = make("p", {}, blue, " pulls the two texts together, ", orange, " pushes them apart.");
  return make("header", { className: "pl-head" }, ...(title ? [make("h1", {}, title)] : []), how);
}

window.pairlens = { show, foldOnPhones };

// A saved file contains its payload.
const [savedPayload, savedOptions] = ["pairlens-payload", "pairlens-options"].map((id) =>
  JSON.parse(document.getElementById(id)?.textContent || "null"),
);
if (savedPayload) {
  show(document.getElementById("pairlens"), savedPayload, savedOptions || {});
  // In a notebook's frame, report the height of the content to the page around it.
  const tell = () => window.parent.postMessage({ pairlens: { height: document.body.offsetHeight } }, "*");
  if (window.parent !== window) new ResizeObserver(tell).observe(document.body);
}
