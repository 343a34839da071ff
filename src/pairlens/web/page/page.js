// The page: the form gives a state, the state a request and a link, the response a picture.

import { Refused, ask, models, render } from "./ask.js";
import { EXAMPLES } from "./examples.js";
import { DEFAULTS, fromLink, inSteps, toLink, toRequest } from "./state.js";

const PAUSE = 300; // milliseconds between the last key and the request
const form = document.getElementById("ask");
const place = document.getElementById("picture");
const part = (selector) => document.querySelector(selector);
const button = (name) => part(`button[name=${name}]`);
const layer = part(".layer"); // the field around the slider

let state = { ...DEFAULTS };
let known = []; // the server's models
let result = null; // the response of the server, without the picture's data
let picture = null; // the drawn picture, which can be destroyed
let asked = ""; // the request whose result is shown
let calculation = null; // the AbortController of the request under way
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
  // A link may name a choice that does not exist here: take the default.
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
  const told = [form.elements.model, ...["method", "level"].filter((name) => state[name]).map((name) => form.elements[name])];
  part(".options small").textContent = told.map((select) => select.selectedOptions[0]?.text).join(", ");
}

function layersOf(model) {
  return known.find(({ name }) => name === model)?.layers || 0;
}

// The request of the state. For a model that needs roles, text a is the query by default.
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
  // What runs is for the form as it was: its end must not mark the page as up to date.
  calculation?.abort();
  calculation = null;
  place.classList.remove("fresh");
  markBusy(true);
  clearTimeout(timer);
  timer = setTimeout(explain, requestOf() ? pause : 0);
}

async function explain() {
  keepLink();
  const request = requestOf();
  const key = JSON.stringify(request);
  if (key === asked && !calculation) {
    wait(false);
    return;
  }
  calculation?.abort();
  calculation = null;
  say("");
  if (!request) {
    clear();
    wait(false);
    return;
  }
  if (Boolean(result?.hits) !== (state.kind === "search")) clear();
  place.classList.remove("fresh");
  const controller = new AbortController();
  calculation = controller;
  wait(true);
  try {
    const onProgress = (fraction) => wait(true, fraction);
    for (const step of inSteps(request)) {
      const response = await ask(...step, { signal: controller.signal, onProgress });
      if (controller !== calculation) return; // a newer request has taken over
      show(response);
      place.classList.add("fresh"); // sentences are what was asked for, while the words are still to come
    }
    asked = key;
  } catch (error) {
    if (controller !== calculation) return;
    clear();
    say(explanationOf(error));
  }
  calculation = null;
  wait(false);
}

// Remove the picture: it must not stand below texts that it does not explain.
function clear() {
  picture?.destroy();
  [picture, result, asked] = [null, null, ""];
  part(".keep").hidden = true;
  part(".said").textContent = "";
}

function cancel() {
  calculation?.abort();
  calculation = null;
  asked = "";
  wait(false);
  say("Cancelled. The picture, if there is one, is of what was asked before.");
}

function markBusy(busy) {
  place.setAttribute("aria-busy", String(busy));
}

// The progress bar appears after 400 ms only: it would flicker where results are quick.
let shown = 0;
function wait(busy, fraction = 0) {
  markBusy(busy);
  const line = part(".busy");
  if (!busy) {
    clearTimeout(shown);
    shown = 0;
    line.hidden = true;
    return;
  }
  line.querySelector("progress").value = fraction;
  const what = place.classList.contains("fresh") ? "words, " : "";
  line.querySelector("span").textContent = `${what}${Math.round(100 * fraction)} %`;
  shown ||= setTimeout(() => (line.hidden = false), 400);
}

function explanationOf(error) {
  const { message } = error;
  return error instanceof Refused ? message.charAt(0).toUpperCase() + message.slice(1) : `Something went wrong: ${error}`;
}

function say(message) {
  part(".message").textContent = message;
}

// The picture.

function show(response) {
  const { picture: payload, ...rest } = response;
  result = rest;
  // The level is chosen in the form: the picture gets the one that was computed, and so no control of its own.
  for (const view of payload.views) view.levels.length = 1;
  const inside = place.contains(document.activeElement);
  picture?.destroy();
  picture = window.pairlens.show(place, payload, {
    arrange: "list",
    special: state.special === "yes",
    threshold: Number(state.threshold) || 0,
    view: Number(state.hit) || 0,
    onChange(now) {
      state.special = now.special ? "yes" : "";
      state.threshold = now.threshold ? String(Number(now.threshold.toPrecision(4))) : "";
      state.hit = now.view ? String(now.view) : "";
      keepLink();
    },
  });
  if (inside) place.focus({ preventScroll: true }); // the focused element was destroyed
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
    // A plot shows one pair, the HTML file all of them.
    const chosen = format === "png" && result.hits ? (result.hits[state.hit] || result.hits[0]).explanation : result;
    if (format === "json") keep(new Blob([JSON.stringify(chosen, null, 1)], { type: "application/json" }), format);
    else keep(await render(chosen, format), format);
    say("");
  } catch (error) {
    say(explanationOf(error));
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
  for (const { name, state: example } of EXAMPLES) {
    const node = document.createElement("button");
    node.type = "button";
    node.textContent = name;
    node.addEventListener("click", () => {
      const { model, method, level, layer: chosen, measure, reference_terms } = state;
      state = { ...DEFAULTS, model, method, level, layer: chosen, measure, reference_terms, ...example };
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
  window.pairlens.foldOnPhones(part(".options"));
  try {
    const about = await models();
    known = about.models;
    document.getElementById("version").textContent = `pairlens ${about.version}`;
  } catch (error) {
    say(error instanceof Refused ? explanationOf(error) : "The server cannot be reached. Is it still running?");
    return;
  }
  for (const { name } of known) form.elements.model.add(new Option(name.split("/").pop(), name));
  form.addEventListener("input", ({ target }) => {
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
