// One group: the prompt, replies side by side, and two of them compared.

import { LONGEST, badge, body, el, number, said, start, text, tone } from "./marks.js";
import { words } from "./words.js";

export function groupView(group, other, pick) {
  const hint = el("span", { class: "keys" }, el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " next, previous   ",
    el("kbd", {}, "1"), "–", el("kbd", {}, "9"), " pick a reply   ", el("kbd", {}, "c"), " compare   ",
    el("kbd", {}, "e"), " ends   ",
    el("kbd", {}, "o"), " overview");
  return [
    el("div", { class: "top" }, text(el("h2"), group.id), hint),
    promptView(group),
    el("div", { id: "compared" }),
    el("div", { class: "replies" }, ...group.replies.map((reply, i) => card(reply, i, other, pick))),
  ];
}

// Long replies are not drawn anew for a click.
export function showPicked(main, group, picked, pick) {
  main.querySelectorAll(".card").forEach((made, i) => {
    made.classList.toggle("picked", picked.has(i));
    const button = made.querySelector(".pick");
    button.setAttribute("aria-pressed", picked.has(i));
    button.textContent = picked.has(i) ? "Picked" : "Compare";
  });
  const compared = main.querySelector("#compared");
  compared.replaceChildren(...(picked.size === 2 ? [compareView(group, [...picked], pick)] : []));
  if (picked.size === 2) compared.scrollIntoView({ block: "nearest" });
}

// To the last lines of the replies, where answers are, and back.
export function showEnds(main) {
  const made = [...main.querySelectorAll(".card > pre, .talk")], there = made.some((pre) => pre.scrollTop > 0);
  const places = made.map((pre) => (there ? 0 : pre.scrollHeight));
  made.forEach((pre, i) => { pre.scrollTop = places[i]; });
}

function promptView(group) {
  const messages = group.prompt.flatMap((message) => [
    group.prompt.length > 1 ? el("div", { class: "role" }, message.role) : null, body(message.content)]);
  const facts = Object.entries(group.metadata);
  if (group.reference !== null) facts.unshift(["reference", group.reference]);
  return el("section", { class: "panel prompt" }, ...messages,
    facts.length ? el("div", { class: "about" }, ...facts.map(([name, value]) =>
      el("span", {}, `${name} `, text(el("b"), shown(value))))) : null);
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 600);

function card(reply, i, other, pick) {
  const flags = [
    reply.truncated ? el("span", { class: "flag" }, "cut off") : null,
    reply.tokens ? el("span", { class: "flag" }, `${reply.tokens} tokens`) : null,
    reply.other && differs(reply, reply.other)
      ? el("span", { class: "flag changed", title: `${other}: ${reply.other.reason}` },
        `${reply.other.status.replaceAll("_", " ")} in ${other}`) : null,
  ];
  const button = el("button", { class: "pick", "aria-pressed": "false", onclick: () => pick(i) }, "Compare");
  const why = el("div", { class: "why" });
  if (reply.extracted !== null) why.append(text(el("q", { title: "what was judged" }), reply.extracted.slice(0, 300)), "  ");
  text(why, reply.reason);
  return el("article", { class: `card ${tone(reply.status)}`, "data-reply": i },
    el("div", { class: "head" }, el("span", { class: "flag" }, i + 1), badge(reply.status), ...flags,
      el("span", { class: "score" }, number(reply.score)), button),
    why, partsView(reply.parts), turnsView(reply.turns));
}

// Who speaks stands beside what is said, not in it: a reply may say "[user]".
function turnsView(turns) {
  if (turns.length === 1) return body(turns[0].content);
  return el("div", { class: "talk" }, ...turns.flatMap((turn) =>
    [text(el("div", { class: "role" }), turn.role), body(turn.content)]));
}

function partsView(parts) {
  const rows = Object.entries(parts);
  if (rows.length === 0) return null;
  return el("div", { class: "parts" }, ...rows.flatMap(([name, value]) => {
    const bar = el("span", { class: "bar" }, el("i"));
    bar.firstChild.style.width = `${100 * Math.min(1, Math.max(0, value ?? 0))}%`;
    return [text(el("span"), name), bar, el("span", {}, number(value))];
  }));
}

const differs = (a, b) => a.status !== b.status || a.score !== b.score;

function marked(runs, own) {
  const pre = el("pre");
  let last = null; // the mark that is being added to
  for (const [kind, value] of runs) {
    if (kind === "same") { text(pre, value); last = null; continue; }
    if (kind !== own && kind !== "both") continue;
    if (last === null) pre.append(last = el(own));
    text(last, value);
  }
  return pre;
}

function compareView(group, [first, second], pick) {
  const a = group.replies[first], b = group.replies[second], long = [a, b].some((r) => said(r).length > LONGEST);
  const runs = words(start(said(a)), start(said(b))), left = marked(runs, "del"), right = marked(runs, "ins");
  const names = [...new Set([...Object.keys(a.parts), ...Object.keys(b.parts)])];
  const rows = [
    ["status", a.status, b.status], ["score", number(a.score), number(b.score)],
    ...names.map((name) => [name, number(a.parts[name]), number(b.parts[name])]),
    ["judged", a.extracted ?? "–", b.extracted ?? "–"], ["reason", a.reason, b.reason],
    ["cut off", a.truncated ? "yes" : "no", b.truncated ? "yes" : "no"],
    ["characters", number(said(a).length), number(said(b).length)],
  ];
  return el("section", { class: "panel compare" },
    el("div", { class: "top" }, el("h3", {}, `Reply ${first + 1} against reply ${second + 1}`),
      el("button", { class: "link", onclick: () => pick(null) }, "close")),
    el("table", {}, el("thead", {}, el("tr", {}, el("th"), el("th", {}, `reply ${first + 1}`), el("th", {}, `reply ${second + 1}`))),
      el("tbody", {}, ...rows.map(([name, x, y]) => el("tr", { class: x === y ? "" : "differs" },
        text(el("td"), name), text(el("td"), x.slice(0, 400)), text(el("td"), y.slice(0, 400)))))),
    el("div", { class: "two" }, el("div", {}, el("h3", {}, `reply ${first + 1}`), left),
      el("div", {}, el("h3", {}, `reply ${second + 1}`), right)),
    long ? el("p", { class: "role" }, `The first ${number(LONGEST)} characters are compared.`) : null);
}
