// The state of the page: one object of strings, and the part of a link after the #, which browsers send to no server.

export const DEFAULTS = {
  kind: "pair", a: "", b: "", query: "", passages: "",
  model: "", method: "", layer: "0", level: "", measure: "", reference_terms: "", roles: "",
  threshold: "", special: "", hit: "",
};
const PAIR = ["a", "b"];
const SEARCH = ["query", "passages", "hit"];

// The link of a state: only values that differ from the defaults and belong to the kind that is shown.
export function toLink(state) {
  const params = new URLSearchParams();
  const other = state.kind === "pair" ? SEARCH : PAIR;
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (other.includes(name) || (name === "layer" && state.method !== "integrated-jacobian")) continue;
    if (state[name] !== value) params.set(name, state[name]);
  }
  return `#${params}`;
}

export function fromLink(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const known = Object.keys(DEFAULTS).filter((name) => params.has(name));
  const state = { ...DEFAULTS, ...Object.fromEntries(known.map((name) => [name, params.get(name)])) };
  return { ...state, kind: state.kind === "search" ? "search" : "pair" };
}

// The passages of a text: one per line, or separated by empty lines where there are any.
export function toPassages(text) {
  const parts = /\n[ \t]*\n/.test(text.trim()) ? text.split(/\n[ \t]*\n/) : text.split("\n");
  return parts.map((part) => part.trim()).filter(Boolean);
}

// The request of a state: its path and body, or null while a text is missing.
export function toRequest(state) {
  const body = { picture: true };
  for (const name of ["level", "model", "method", "measure", "reference_terms"]) if (state[name]) body[name] = state[name];
  if (state.method === "integrated-jacobian") body.layer = Number(state.layer);
  if (state.kind === "search") {
    const passages = toPassages(state.passages);
    const enough = state.query.trim() && passages.length;
    return enough ? ["api/rank", { ...body, query: state.query, passages, roles: ["query", "document"] }] : null;
  }
  if (state.roles) body.roles = state.roles.split(",");
  return state.a.trim() && state.b.trim() ? ["api/explain", { ...body, a: state.a, b: state.b }] : null;
}

const LONG = 48; // words of a text; longer ones are explained by sentences and words by default
const WORDS = /[\p{L}\p{M}\p{N}_]+|[^\s\p{L}\p{M}\p{N}_]/gu; // and punctuation, as pairlens.text counts them
const SEVERAL = /[.!?]["'”’)\]]*\s+\S/; // sentences

// What to ask for in turn: of long texts the sentences, which are quick, then the same request with words.
export function inSteps([path, body]) {
  const texts = body.passages || [body.a, body.b];
  const isLong = texts.some((text) => text.match(WORDS).length > LONG && SEVERAL.test(text));
  const zooms = !body.level || body.level === "zoom";
  return isLong && zooms ? [[path, { ...body, level: "sentence" }], [path, body]] : [[path, body]];
}
