// Nodes, numbers and characters. Texts are inserted as text nodes, so that no text becomes markup.

const OTHER = { a: "b", b: "a" };

// A new element. `properties` sets properties of the node where they exist, attributes otherwise.
function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function makeShape(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function total(numbers) {
  return numbers.reduce((sum, value) => sum + value, 0);
}

function largest(numbers) {
  return numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

function rangeOf(numbers) {
  return numbers.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
}

// Numbers as pairlens.render.text writes them, with a typographic minus sign.

function number(value, decimals = 4) {
  const digits = Math.abs(value).toFixed(decimals);
  return (value < 0 && Number(digits) ? "−" : "") + digits;
}

function signed(value, decimals = 4) {
  const text = number(value, decimals);
  return value > 0 && Number(text) ? "+" + text : text;
}

// The values rounded so that they add up to the rounded total, as pairlens.render.text.add_up does it.
function addUp(values, sum, decimals = 4) {
  const scaled = values.map((value) => value * 10 ** decimals);
  const rounded = scaled.map(Math.round);
  const missing = Math.round(sum * 10 ** decimals) - total(rounded);
  if (Math.abs(missing) <= values.length) {
    const sign = Math.sign(missing);
    const order = values.map((_, n) => n).sort((n, m) => sign * (rounded[n] - scaled[n] - rounded[m] + scaled[m]));
    for (const n of order.slice(0, Math.abs(missing))) rounded[n] += sign;
  }
  return rounded.map((value) => value / 10 ** decimals);
}

function tiny(value) {
  if (!value) return "0";
  const [digit, power] = Math.abs(value).toExponential(0).split("e");
  const exponent = (power < 0 ? "−" : "+") + String(Math.abs(power)).padStart(2, "0");
  return `${value < 0 ? "−" : ""}${digit}e${exponent}`;
}

// Invisible characters and control characters are shown by name.

const UNSEEN =
  /(?!\p{Variation_Selector}|\r\n|[\n\t])[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u2800]/gu;
// A joiner belongs to an emoji, or to a word in a script that needs it; elsewhere it is invisible.
const JOINED = /(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])[\p{L}\p{M}\p{So}\p{Emoji_Modifier}\ufe0f]/u;
const UNSEEN_NAMES = new Map(
  Object.entries({
    NUL: 0x00, BS: 0x08, CR: 0x0d, ESC: 0x1b, DEL: 0x7f, SHY: 0xad, ALM: 0x61c, ZWSP: 0x200b, ZWNJ: 0x200c,
    ZWJ: 0x200d, LRM: 0x200e, RLM: 0x200f, LS: 0x2028, PS: 0x2029, LRE: 0x202a, RLE: 0x202b, PDF: 0x202c,
    LRO: 0x202d, RLO: 0x202e, WJ: 0x2060, LRI: 0x2066, RLI: 0x2067, FSI: 0x2068, PDI: 0x2069, BOM: 0xfeff,
  }).map(([name, code]) => [code, name]),
);

// The text in parts: [string, null], or [character, name] for an invisible character.
function* split(text) {
  let here = 0;
  for (const { 0: char, index } of text.matchAll(UNSEEN)) {
    const before = Array.from(text.slice(Math.max(0, index - 2), index)).at(-1) || "";
    if ((char === "\u200c" || char === "\u200d") && JOINED.test(before)) continue;
    if (index > here) yield [text.slice(here, index), null];
    const code = char.codePointAt(0);
    yield [char, UNSEEN_NAMES.get(code) || "U+" + code.toString(16).toUpperCase().padStart(4, "0")];
    here = index + char.length;
  }
  if (here < text.length) yield [text.slice(here), null];
}

// The text as nodes whose textContent is the text itself; the style sheet adds the names.
function written(text) {
  return [...split(text)].map(([part, name]) =>
    name ? make("span", { className: "pl-unseen", "data-name": name }, part) : part,
  );
}

// The text on one line, for labels.
function plain(text, length = 60) {
  const line = [...split(text)].map(([part, name]) => (name ? `[${name}]` : part)).join("");
  const chars = Array.from(line.slice(0, 4 * length).replace(/\s+/g, " ").trim() || "␣");
  return chars.length > length ? chars.slice(0, length - 1).join("") + "…" : chars.join("");
}

function nameOf(text, length) {
  return make("bdi", { className: "pl-name" }, plain(text, length));
}
