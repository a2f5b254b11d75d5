// What is shown, and the keys. Where one is stands in the address: #12 is the group in place 12.

import { groupView, showEnds, showPicked } from "./group.js";
import { List } from "./list.js";
import { el, number } from "./marks.js";
import { overview } from "./plots.js";

const main = document.getElementById("main");
const cache = new Map();
let run, groups, open = null, picked = new Set(), whole = null, sought = 0;
const list = new List((place) => { location.hash = place; }, fetchSoon);

const get = async (path) => {
  const answer = await fetch(`data/${path}`);
  if (!answer.ok) throw new Error((await answer.text()).slice(0, 500));
  return answer.json();
};

function group(place) {
  if (!cache.has(place)) {
    if (cache.size > 200) cache.delete(cache.keys().next().value);
    const asked = get(`group/${place}`);
    asked.catch(() => cache.delete(place));
    cache.set(place, asked);
  }
  return cache.get(place);
}

// What is in sight is fetched while nothing happens, one by one: a click then need not wait.
const LIGHT = 300000; // bytes; heavier groups wait for their click
async function fetchSoon(seen) {
  const mine = ++sought;
  await new Promise((rest) => setTimeout(rest, 400));
  for (const { place, bytes } of seen) {
    if (mine !== sought) return;
    if (bytes < LIGHT) await group(place).catch(() => {});
  }
}

async function go() {
  const place = /^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) : null;
  picked = new Set();
  list.mark(place ?? -1);
  if (place === null) {
    open = null;
    show(whole ??= overview(run, groups), "overview");
    return;
  }
  try {
    const found = await group(place);
    if (location.hash !== `#${place}`) return; // one has gone on meanwhile
    open = found;
    show(groupView(open, run.other, pick), "group");
    main.scrollTop = 0;
    for (const by of [1, -1]) if (list.near(by) !== undefined) group(list.near(by));
  } catch (error) {
    show([el("p", { class: "empty" }, `This group cannot be read (${error.message}). Is assay view still running?`)], "error");
  }
}

function show(parts, what) {
  main.replaceChildren(...parts);
  document.body.dataset.shows = what;
}

function pick(i) {
  if (open === null || (i !== null && i >= open.replies.length)) return;
  if (i === null) picked.clear();
  else if (!picked.delete(i)) {
    if (picked.size === 2) picked.delete([...picked][0]);
    picked.add(i);
  }
  showPicked(main, open, picked, pick);
}

function compare() {
  if (open === null || open.replies.length < 2) return;
  if (picked.size === 2) return pick(null);
  const first = open.replies.findIndex((reply) => reply.status === "correct");
  const other = open.replies.findIndex((reply, i) => i !== first && reply.status !== "correct");
  picked = new Set([Math.max(0, first), other < 0 || other === Math.max(0, first) ? 1 : other]);
  showPicked(main, open, picked, pick);
}

function leave() {
  if (picked.size) pick(null);
  else location.hash = "";
}

const KEYS = {
  j: () => list.step(1), k: () => list.step(-1), ArrowDown: () => list.step(1), ArrowUp: () => list.step(-1),
  o: () => { location.hash = ""; }, Escape: leave, c: compare, "/": () => list.search.focus(),
  e: () => showEnds(main),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key.startsWith("Arrow") && main.contains(document.activeElement)) return; // it scrolls there
  const act = KEYS[event.key] ?? (/^[1-9]$/.test(event.key) ? () => pick(Number(event.key) - 1) : null);
  if (act) { event.preventDefault(); act(); }
});

function tiles() {
  const { summary } = run, rows = [[number(groups.length), groups.length === 1 ? "group" : "groups"]];
  if (run.plan && run.done < run.plan.data.tasks) rows[0][1] = `of ${number(run.plan.data.tasks)} groups so far, reload for more`;
  if (summary) {
    rows.push([number(summary.replies), "replies"]);
    for (const [name, found] of [["pass", summary.pass_at], ["maj", summary.maj_at]]) {
      for (const k of name === "pass" ? [Object.keys(found)[0], Object.keys(found).at(-1)] : [Object.keys(found).at(-1)]) {
        const row = found[k];
        if (row && row.value !== null && !rows.some(([, label]) => label.startsWith(`${name}@${k} `))) {
          rows.push([row.value.toFixed(3), `${name}@${k} ${row.low === null ? "" : `(${row.low.toFixed(3)}–${row.high.toFixed(3)})`}`]);
        }
      }
    }
    if (summary.without_score) rows.push([number(summary.without_score), "without a score"]);
  }
  document.getElementById("tiles").replaceChildren(...rows.map(([value, label]) =>
    el("div", { class: "tile" }, el("b", {}, value), el("span", {}, label))));
}

async function start() {
  const [told, index] = await Promise.all([get("run"), get("index")]);
  run = told; groups = index.groups;
  const against = run.other ? ` against ${run.other}` : "";
  document.title = `${run.name} · Assay`;
  document.getElementById("name").textContent = run.plan
    ? `${run.name} · ${run.plan.environment.id}${against}` : `${run.name} · training samples`;
  tiles();
  list.load(groups, Boolean(run.other));
  addEventListener("hashchange", go);
  await go();
}

document.getElementById("home").addEventListener("click", (event) => { event.preventDefault(); location.hash = ""; });
start().catch((error) => show([el("p", { class: "empty" }, `The run cannot be shown: ${error.message}`)], "error"));
