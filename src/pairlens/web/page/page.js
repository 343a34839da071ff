// The page: what is typed becomes a state, a state a request and a link, an answer a picture.

import { Refused, ask, models, render } from "./ask.js";
import { EXAMPLES } from "./examples.js";
import { DEFAULTS, fromLink, toLink, toRequest } from "./state.js";

const PAUSE = 300; // milliseconds after the last key
const form = document.getElementById("ask");
const place = document.getElementById("picture");
const part = (selector) => document.querySelector(selector);
const button = (name) => part(`button[name=${name}]`);
const layer = part(".layer"); // its field

let state = { ...DEFAULTS };
let known = []; // the server's models
let result = null; // what the server gave, without the picture's data
let picture = null; // what draws it
let asked = ""; // the request of the answer that is shown
let calculation = null; // what stops the one under way
let timer = 0;

// The form and the state.

function read() {
  state = { ...state, ...Object.fromEntries(new FormData(form)) };
  arrange();
}

function write() {
  form.elements.layer.max = layersOf(state.model);
  for (const name of new Set([...form.elements].map((field) => field.name))) {
    if (name in state) form.elements[name].value = state[name];
  }
  // Of what a link asks for, only what is there.
  for (const select of form.querySelectorAll("select")) {
    if (select.selectedIndex < 0) select.value = DEFAULTS[select.name] || select.options[0].value;
  }
  read();
}

function arrange() {
  for (const kind of ["pair", "search"]) document.getElementById(kind).hidden = state.kind !== kind;
  const layers = layersOf(state.model);
  layer.hidden = state.method !== "integrated-jacobian" || !layers;
  form.elements.layer.max = layers;
  state.layer = form.elements.layer.value;
  layer.querySelector("output").textContent = `${state.layer} of ${layers}`;
  form.elements.roles.disabled = state.kind === "search";
}

function layersOf(model) {
  return known.find(({ name }) => name === model)?.layers || 0;
}

// What is asked for: a model that knows queries and documents only takes a for the query.
function requestOf() {
  const must = known.find(({ name }) => name === state.model)?.roles;
  return toRequest(must && !state.roles ? { ...state, roles: "query,document" } : state);
}

function keepLink() {
  const link = toLink(withoutDefaultModel());
  if (link !== location.hash) history.replaceState(null, "", link);
}

function withoutDefaultModel() {
  return state.model === known[0]?.name ? { ...state, model: "" } : state;
}

// Asking.

function changed(pause) {
  read();
  clearTimeout(timer);
  timer = setTimeout(explain, pause);
}

async function explain() {
  keepLink();
  const request = requestOf();
  const key = JSON.stringify(request);
  if (key === asked && !calculation) return;
  calculation?.abort();
  calculation = null;
  say("");
  if (!request) {
    wait(false);
    return;
  }
  const own = (calculation = new AbortController());
  wait(true);
  try {
    const found = await ask(...request, { signal: own.signal, onProgress: (fraction) => wait(true, fraction) });
    if (own !== calculation) return;
    asked = key;
    show(found);
  } catch (error) {
    if (own !== calculation) return;
    asked = "";
    say(own.signal.aborted ? "" : error instanceof Refused ? sentence(error.message) : `Something went wrong: ${error}`);
  }
  calculation = null;
  wait(false);
}

function cancel() {
  calculation?.abort();
  calculation = null;
  asked = "";
  wait(false);
  say("Cancelled. The picture, if there is one, is of what was asked before.");
}

// Bars flicker where answers are quick, so this one waits a little.
let shown = 0;
function wait(busy, fraction = 0) {
  place.setAttribute("aria-busy", String(busy));
  const line = part(".busy");
  if (!busy) {
    clearTimeout(shown);
    shown = 0;
    line.hidden = true;
    return;
  }
  line.querySelector("progress").value = fraction;
  line.querySelector("span").textContent = `${Math.round(100 * fraction)} %`;
  shown ||= setTimeout(() => (line.hidden = false), 400);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function say(message) {
  part(".message").textContent = message;
}

// The picture.

function show(found) {
  const { picture: payload, ...rest } = found;
  result = rest;
  const inside = place.contains(document.activeElement);
  picture?.destroy();
  picture = window.pairlens.show(place, payload, {
    arrange: "list",
    level: state.show || undefined,
    special: state.special === "yes",
    threshold: Number(state.threshold) || 0,
    view: Number(state.hit) || 0,
    onChange(now) {
      state.show = now.level === payload.views[0].levels[0].name ? "" : now.level;
      state.special = now.special ? "yes" : "";
      state.threshold = now.threshold ? String(Number(now.threshold.toPrecision(4))) : "";
      state.hit = now.view ? String(now.view) : "";
      keepLink();
    },
  });
  if (inside) place.focus({ preventScroll: true }); // what had the focus is gone
  part(".keep").hidden = false;
  part(".said").textContent = `Score ${payload.views[0].score.toFixed(3)}`;
}

function applyTheme() {
  const chosen = document.documentElement.dataset.theme;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.body.dataset.theme = ["light", "dark"].includes(chosen) ? chosen : dark ? "dark" : "light";
}

// Keeping it.

function keep(blob, suffix) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `pairlens.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function download(format) {
  try {
    // A plot has one pair; the picture as a file has them all.
    const chosen = format === "png" && result.hits ? (result.hits[state.hit] || result.hits[0]).explanation : result;
    if (format === "json") keep(new Blob([JSON.stringify(chosen, null, 1)], { type: "application/json" }), format);
    else keep(await render(chosen, format), format);
    say("");
  } catch (error) {
    say(error instanceof Refused ? sentence(error.message) : `Something went wrong: ${error}`);
  }
}

async function copyLink() {
  keepLink();
  try {
    await navigator.clipboard.writeText(location.href);
    flash(button("link"), "Copied");
  } catch {
    window.prompt("The link to this view", location.href);
  }
}

function flash(node, text) {
  const before = node.dataset.text || node.textContent;
  node.dataset.text = before;
  node.textContent = text;
  part(".said").textContent = text;
  setTimeout(() => (node.textContent = before), 1500);
}

// Starting.

function follow(link) {
  const given = fromLink(link);
  const empty = !toRequest(given) && !link.replace("#", "");
  state = { ...given, ...(empty ? EXAMPLES[0].state : {}) };
  state.model ||= known[0].name;
  write();
  return explain();
}

function addExamples() {
  for (const { name, state: own } of EXAMPLES) {
    const node = document.createElement("button");
    node.type = "button";
    node.textContent = name;
    node.addEventListener("click", () => {
      const { model, method, level, layer: chosen, measure, reference_terms } = state;
      state = { ...DEFAULTS, model, method, level, layer: chosen, measure, reference_terms, ...own };
      write();
      explain();
    });
    part(".examples").append(node);
  }
}

async function start() {
  applyTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
  new MutationObserver(applyTheme).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  addExamples();
  try {
    const about = await models();
    known = about.models;
    document.getElementById("version").textContent = `pairlens ${about.version}`;
  } catch (error) {
    say(error instanceof Refused ? sentence(error.message) : "The server cannot be reached. Is it still running?");
    return;
  }
  for (const { name } of known) form.elements.model.add(new Option(name.split("/").pop(), name));
  form.addEventListener("input", ({ target }) => {
    if (target.name === "level") state.show = ""; // what was computed is what is shown
    if (target.matches("textarea")) state.hit = "";
    changed(target.matches("textarea, [type=range]") ? PAUSE : 0);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  button("cancel").addEventListener("click", cancel);
  button("link").addEventListener("click", copyLink);
  for (const format of ["html", "png", "json"]) button(format).addEventListener("click", () => download(format));
  addEventListener("hashchange", () => follow(location.hash));
  await follow(location.hash);
}

start();
