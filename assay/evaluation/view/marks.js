// Elements, statuses and text. Model text enters the page here, and only as text.

const OURS = new Set(["bad_gold", "verifier_error", "sandbox_error"]);
const PLAIN = new Set(["correct", "incorrect", "unparseable"]);
export const STATUSES = ["correct", "incorrect", "unparseable", "timeout", "memory", "output_limit",
  "runtime_error", "compile_error", "broke_sandbox", "bad_gold", "verifier_error", "sandbox_error"];

export const tone = (status) => OURS.has(status) ? "ours" : PLAIN.has(status) ? status : "limit";

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Control characters, lone surrogates, and marks that turn the direction of writing: they would
// show a text as another.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function text(into, value) {
  let at = 0;
  for (const match of value.matchAll(ODD)) {
    if (match.index > at) into.append(value.slice(at, match.index));
    const code = match[0].charCodeAt(0).toString(16).padStart(4, "0");
    into.append(el("span", { class: "odd", title: "a character that cannot be seen" }, `\\u${code}`));
    at = match.index + 1;
  }
  into.append(at ? value.slice(at) : value);
  return into;
}

export const number = (value) =>
  value === null || value === undefined ? "none" : Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(3);

export const badge = (status) =>
  el("span", { class: `badge ${tone(status)}` }, status.replaceAll("_", " "));

const LONGEST = 20000;

export function body(value) {
  const pre = el("pre");
  text(pre, value.slice(0, LONGEST));
  if (value.length > LONGEST) {
    const rest = el("button", { class: "link", onclick: () => { rest.remove(); text(pre, value.slice(LONGEST)); } },
      ` … ${(value.length - LONGEST).toLocaleString("en")} more characters`);
    pre.append(rest);
  }
  return pre;
}

export const said = (reply) => reply.turns.length === 1
  ? reply.turns[0].content
  : reply.turns.map((turn) => `[${turn.role}]\n${turn.content}`).join("\n\n");
