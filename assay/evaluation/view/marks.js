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

// Control characters, lone surrogates, letters that are blank, tags, and marks that turn the
// direction of writing: they would show a text as another. (The \r of a line's end is none.)
const ODD = /(?:[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\r(?!\n)|\udb40[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])+/g;
const MOST_ODD = 2000; // runs of them that are marked in one text; more are escaped without a mark

const escaped = (run) => [...run].map((c) => c.codePointAt(0)).map((code) =>
  code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`).join("");

export function text(into, value) {
  let at = 0, found = 0;
  for (const match of value.matchAll(ODD)) {
    if (++found > MOST_ODD) {
      into.append(value.slice(at).replace(ODD, escaped));
      return into;
    }
    if (match.index > at) into.append(value.slice(at, match.index));
    into.append(el("span", { class: "odd", title: "characters that cannot be seen" }, escaped(match[0])));
    at = match.index + match[0].length;
  }
  into.append(at ? value.slice(at) : value);
  return into;
}

export const number = (value) =>
  value === null || value === undefined ? "none" : Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(3);

export const badge = (status) =>
  el("span", { class: `badge ${tone(status)}` }, status.replaceAll("_", " "));

export const LONGEST = 20000;

// A place between characters: half of one that two units make is none.
const cut = (value, at) => (/[\ud800-\udbff]/.test(value[at - 1] ?? "") ? at - 1 : at);

export const start = (value, most = LONGEST) => value.length > most ? value.slice(0, cut(value, most)) : value;

// Long texts are shown in parts, each ten times as long: no click may stop the browser.
export function body(value) {
  const pre = el("pre");
  const add = (from, most) => {
    const to = value.length > from + most ? cut(value, from + most) : value.length;
    text(pre, value.slice(from, to));
    if (to === value.length) return;
    const rest = el("button", { class: "link", onclick: () => { rest.remove(); add(to, 10 * LONGEST); } },
      ` … ${(value.length - to).toLocaleString("en")} more characters`);
    pre.append(rest);
  };
  add(0, LONGEST);
  return pre;
}

export const said = (reply) => reply.turns.length === 1
  ? reply.turns[0].content
  : reply.turns.map((turn) => `[${turn.role}]\n${turn.content}`).join("\n\n");
