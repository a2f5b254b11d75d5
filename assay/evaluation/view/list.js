// The groups on the left: search, filters, order; only the rows in sight are in the page.

import { STATUSES, el, text, tone } from "./marks.js";

const HEIGHT = 52;
const KINDS = [
  ["all", "All groups"], ["none", "None correct"], ["some", "Some correct"], ["every", "All correct"],
  ["flat", "No spread: all rewards equal"], ["lost", "With replies without a score"],
];
const ORDERS = [["place", "In order"], ["worst", "Worst first"], ["best", "Best first"],
  ["spread", "Most spread first"]];

export class List {
  constructor(choose, sight) {
    this.choose = choose; this.sight = sight; // called with a place to open, and with the groups in sight
    this.groups = []; this.shown = []; this.current = -1; this.statuses = new Set();
    this.box = document.getElementById("list"); this.rows = document.getElementById("rows");
    this.search = document.getElementById("search");
    this.kind = options("kind", KINDS); this.order = options("order", ORDERS);
    for (const control of [this.kind, this.order]) control.addEventListener("change", () => this.apply());
    this.search.addEventListener("input", () => this.apply());
    this.box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.rows.addEventListener("click", (event) => {
      const item = event.target.closest(".item");
      if (item) this.choose(Number(item.dataset.place));
    });
  }

  load(groups, compared) {
    this.groups = groups.map((group, place) => {
      const scored = group.scores.filter((score) => score !== null);
      const right = group.statuses.filter((status) => status === "correct").length;
      const mean = scored.reduce((sum, score) => sum + score, 0) / (scored.length || 1);
      const variance = scored.reduce((sum, score) => sum + (score - mean) ** 2, 0) / (scored.length || 1);
      return { ...group, place, right, mean, spread: variance, scored: scored.length,
        words: `${group.id}\n${group.prompt}`.toLowerCase() };
    });
    if (compared) this.kind.append(el("option", { value: "changed" }, "Verdicts differ between the runs"));
    const counts = new Map();
    for (const group of groups) for (const status of group.statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
    document.getElementById("statuses").replaceChildren(
      ...STATUSES.filter((status) => counts.has(status)).map((status) => this.chip(status, counts.get(status))));
    this.apply();
  }

  chip(status, count) {
    const made = el("button", { class: `chip ${tone(status)}`, "aria-pressed": "false", "data-status": status,
      onclick: () => {
        const on = !this.statuses.delete(status);
        if (on) this.statuses.add(status);
        made.setAttribute("aria-pressed", on);
        this.apply();
      } }, el("span", { class: "dot" }), status.replaceAll("_", " "), el("i", {}, count.toLocaleString("en")));
    return made;
  }

  apply() {
    const wanted = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = this.kind.value, order = this.order.value;
    this.shown = this.groups.filter((group) =>
      (this.statuses.size === 0 || group.statuses.some((status) => this.statuses.has(status)))
      && OF[kind](group) && wanted.every((word) => group.words.includes(word)));
    if (order !== "place") this.shown.sort((a, b) => BY[order](a, b) || a.place - b.place);
    const of = this.shown.length === this.groups.length ? "" : ` of ${this.groups.length.toLocaleString("en")}`;
    document.getElementById("count").textContent = `${this.shown.length.toLocaleString("en")}${of} ${this.groups.length === 1 ? "group" : "groups"}`;
    this.rows.style.height = `${this.shown.length * HEIGHT}px`;
    this.box.scrollTop = 0;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / HEIGHT) - 4);
    const last = Math.min(this.shown.length, first + Math.ceil(this.box.clientHeight / HEIGHT) + 8);
    this.rows.replaceChildren(...this.shown.slice(first, last).map((group, i) => this.item(group, first + i)));
    this.tell();
    this.sight(this.shown.slice(first, last));
  }

  item(group, row) {
    const more = group.statuses.length > 16 ? el("i", {}, `+${group.statuses.length - 16}`) : null;
    const strip = el("span", { class: "strip" }, ...group.statuses.slice(0, 16).map((status) =>
      el("s", { class: tone(status), title: status })), more);
    const made = el("div", { class: "item", role: "option", "data-place": group.place, id: `item-${group.place}`,
      "aria-selected": String(group.place === this.current) },
      el("div", {}, text(el("b"), group.id), strip), text(el("p"), group.prompt));
    made.style.top = `${row * HEIGHT}px`;
    return made;
  }

  mark(place) {
    this.current = place;
    const row = this.row(), view = this.box, before = view.scrollTop;
    if (row >= 0) {
      const top = row * HEIGHT;
      if (top < before) view.scrollTop = top;
      else if (top + HEIGHT > before + view.clientHeight) view.scrollTop = top + HEIGHT - view.clientHeight;
    }
    if (view.scrollTop !== before) this.draw();
    else { // the rows stay: only which one is chosen has changed
      for (const item of this.rows.children) item.setAttribute("aria-selected", Number(item.dataset.place) === place);
      this.tell();
    }
  }

  tell() { this.box.setAttribute("aria-activedescendant", this.current < 0 ? "" : `item-${this.current}`); }

  row() { return this.shown.findIndex((group) => group.place === this.current); }

  step(by) {
    const next = this.shown[Math.min(this.shown.length - 1, Math.max(0, this.row() + by))];
    if (next) this.choose(next.place);
  }

  near(by) { return this.shown[this.row() + by]?.place; }
}

const OF = {
  all: () => true,
  none: (group) => group.scored > 0 && group.right === 0,
  some: (group) => group.right > 0 && group.right < group.scored,
  every: (group) => group.scored > 0 && group.right === group.scored,
  flat: (group) => group.scored > 1 && group.spread < 1e-12,
  lost: (group) => group.scored < group.statuses.length,
  changed: (group) => group.changed > 0,
};
const BY = {
  worst: (a, b) => a.mean - b.mean,
  best: (a, b) => b.mean - a.mean,
  spread: (a, b) => b.spread - a.spread,
};

function options(id, pairs) {
  const select = document.getElementById(id);
  select.append(...pairs.map(([value, label]) => el("option", { value }, label)));
  return select;
}
