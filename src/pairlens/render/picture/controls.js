// The controls: level, threshold, special tokens, colours, and which of several views is shown.

const LEVELS = { token: "Tokens", word: "Words", zoom: "Sentences and words", sentence: "Sentences", span: "Spans" };
let groups = 0;

function makeControls(shared) {
  const { views } = shared.payload;
  const options = make("div", { className: "pl-options" }, makeThreshold(shared));
  if (views.some(hasSpecial)) options.append(makeSpecial(shared));
  const folded = make("details", { className: "pl-fold" }, make("summary", {}, "More"), options);
  const levels = shared.levels.length > 1 ? [makeLevels(shared)] : [];
  return make("div", { className: "pl-controls" }, ...levels, folded, makeTheme(shared));
}

// Options are folded on a phone, and elsewhere in sight.
function foldOnPhones(details, signal) {
  const phone = matchMedia("(max-width: 30rem)");
  const fold = () => (details.open = !phone.matches);
  phone.addEventListener("change", fold, { signal });
  fold();
}

// Whether special tokens contribute anything to a view.
function hasSpecial({ levels: [{ units_a, units_b, matrix, effects_a, effects_b }] }) {
  const counts = (unit, effect, values) => unit.kind === "special" && (effect || values.some(Boolean));
  return (
    units_a.some((unit, i) => counts(unit, effects_a[i], matrix[i])) ||
    units_b.some((unit, j) => counts(unit, effects_b[j], matrix.map((row) => row[j])))
  );
}

function makeLevels(shared) {
  const group = `pl-level-${(groups += 1)}`;
  const choices = shared.levels.map((level) => {
    const chosen = level === shared.state.level;
    const input = make("input", { type: "radio", name: group, value: level, checked: chosen });
    input.addEventListener("change", () => shared.set({ level }));
    return make("label", {}, input, make("span", {}, LEVELS[level]));
  });
  return make("fieldset", { className: "pl-choice" }, make("legend", { className: "pl-hidden" }, "Level"), ...choices);
}

function makeThreshold(shared) {
  const input = make("input", { type: "range", min: 0, max: 100, step: 1 });
  const output = make("output");
  shared.syncThreshold = () => {
    input.value = Math.round((100 * shared.state.threshold) / shared.peak);
    output.textContent = number(shared.state.threshold, 3);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => shared.set({ threshold: (shared.peak * input.value) / 100 }));
  return make("label", { className: "pl-threshold" }, make("span", {}, "Threshold"), input, output);
}

function makeSpecial(shared) {
  const input = make("input", { type: "checkbox", checked: shared.state.special });
  input.addEventListener("change", () => shared.set({ special: input.checked }));
  return make("label", { className: "pl-special" }, input, "Special tokens");
}

// The theme is stored as data-theme of the root element, where a page around the picture may set it too.
function makeTheme(shared) {
  const button = make("button", { type: "button", className: "pl-theme" });
  shared.syncTheme = () => (button.textContent = shared.theme === "dark" ? "Light" : "Dark");
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = shared.theme === "dark" ? "light" : "dark";
  });
  return button;
}

function makeSlider(shared) {
  const { views } = shared.payload;
  const input = make("input", { type: "range", min: 0, max: views.length - 1, step: 1, value: shared.state.view });
  const output = make("output");
  input.setAttribute("aria-label", "Explanation");
  input.addEventListener("input", () => shared.set({ view: Number(input.value) }));
  shared.syncView = () => {
    const { label } = views[shared.state.view];
    output.replaceChildren(nameOf(label));
    input.setAttribute("aria-valuetext", plain(label));
  };
  const ends = views.length > 8 ? [views[0], views.at(-1)] : views;
  const ticks = make("div", { className: "pl-ticks", "aria-hidden": "true" });
  ticks.append(...ends.map((view) => nameOf(view.label, 16)));
  return make("div", { className: "pl-slider" }, "Showing ", output, input, ticks);
}

function makeList(shared) {
  // The scores of one pair at several layers differ by rounding errors only: such views keep their order.
  const rounded = (view) => Number(view.score.toFixed(6));
  const ranked = [...shared.payload.views.entries()].sort(([, one], [, other]) => rounded(other) - rounded(one));
  const buttons = ranked.map(([n, view]) => {
    const text = make("span", { dir: "auto" }, make("b", {}, plain(view.label)), plain(view.text_b, 160));
    const score = make("span", { className: "pl-right" }, number(view.score));
    const button = make("button", { type: "button" }, score, text);
    button.addEventListener("click", () => shared.set({ view: n }));
    return button;
  });
  shared.syncView = () =>
    buttons.forEach((button, at) => button.setAttribute("aria-current", String(ranked[at][0] === shared.state.view)));
  return make("ol", { className: "pl-list" }, ...buttons.map((button) => make("li", {}, button)));
}
