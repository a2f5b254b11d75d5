// The overview: curves and counts as inline SVG.

import { STATUSES, el, number, text, tone } from "./marks.js";

const SPACE = "http://www.w3.org/2000/svg";
const W = 360, H = 170, LEFT = 34, BOTTOM = 22, TOP = 8;

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const x = (share) => LEFT + share * (W - LEFT - 8);
const y = (share) => TOP + (1 - share) * (H - TOP - BOTTOM);
const label = (at, up, value, anchor = "middle") => svg("text", { x: at, y: up, "text-anchor": anchor }, value);

function frame(most, format) {
  const lines = [0, 0.5, 1].flatMap((share) => [
    svg("line", { class: "axis", x1: LEFT, x2: W - 8, y1: y(share), y2: y(share) }),
    label(LEFT - 5, y(share) + 3, format(share * most), "end")]);
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" }, ...lines);
}

function bars(values, labels, tones = []) {
  const most = Math.max(1, ...values), plot = frame(most, (v) => (Number.isInteger(v) ? v.toLocaleString("en") : ""));
  const width = (W - LEFT - 8) / values.length, wide = Math.min(64, Math.max(1, width - 3)), every = Math.ceil(values.length / 12);
  values.forEach((value, i) => {
    const bar = svg("rect", { class: tones[i] ? `tinted ${tones[i]}` : "mark", x: x(0) + (i + 0.5) * width - wide / 2, y: y(value / most),
      width: wide, height: y(0) - y(value / most), rx: 2 });
    bar.append(svg("title", {}, `${labels[i]}: ${value.toLocaleString("en")}`));
    plot.append(bar);
    if (i % every === 0) plot.append(label(x(0) + (i + 0.5) * width, H - 7, labels[i]));
  });
  return plot;
}

function curves(families) {
  const plot = frame(1, (v) => v.toFixed(1));
  const ks = [...new Set(families.flatMap((rows) => Object.keys(rows).map(Number)))].sort((a, b) => a - b);
  const place = (k) => x(ks.length < 2 ? 0.5 : Math.log(k) / Math.log(ks.at(-1)));
  families.forEach((rows, which) => {
    const kind = which ? " second" : "", points = Object.entries(rows).filter(([, row]) => row.value !== null);
    const sure = points.filter(([, row]) => row.low !== null);
    if (sure.length > 1) {
      const edge = [...sure.map(([k, row]) => `${place(k)},${y(row.high)}`),
        ...sure.reverse().map(([k, row]) => `${place(k)},${y(row.low)}`)];
      plot.append(svg("polygon", { class: `band${kind}`, points: edge.join(" ") }));
    }
    plot.append(svg("polyline", { class: `line${kind}`, points: points.map(([k, row]) => `${place(k)},${y(row.value)}`).join(" ") }));
    for (const [k, row] of points) {
      const dot = svg("circle", { class: kind.trim(), cx: place(k), cy: y(row.value), r: 3.2 });
      dot.append(svg("title", {}, `k = ${k}: ${number(row.value)}${row.low === null ? "" : ` (${number(row.low)} to ${number(row.high)})`}`));
      plot.append(dot);
    }
  });
  for (const k of ks) plot.append(label(place(k), H - 7, k));
  return plot;
}

const panel = (title, ...inside) => el("section", { class: "panel" }, el("h3", {}, title), ...inside);

export function overview(run, groups) {
  const given = groups.flatMap((g) => g.scores).filter((score) => score !== null);
  const low = given.reduce((a, b) => Math.min(a, b), 0), high = given.reduce((a, b) => Math.max(a, b), 1);
  const scores = new Array(20).fill(0), counts = new Map(), most = Math.max(0, ...groups.map((g) => g.scores.length));
  const bins = most > 0 && most <= 16 ? most : 10, rates = new Array(bins + 1).fill(0);
  for (const group of groups) {
    group.statuses.forEach((status, i) => {
      counts.set(status, (counts.get(status) ?? 0) + 1);
      const score = group.scores[i];
      if (score !== null) scores[Math.min(19, Math.floor(20 * (score - low) / (high - low)))]++;
    });
    const scored = group.scores.filter((score) => score !== null).length;
    const right = group.statuses.filter((status) => status === "correct").length;
    if (scored) rates[Math.round(bins * right / scored)]++;
  }
  const there = STATUSES.filter((status) => counts.has(status));
  const summary = run.summary;
  const parts = [
    panel("Statuses: replies", bars(there.map((s) => counts.get(s)), there.map((s) => s.replaceAll("_", " ")), there.map(tone))),
    panel("Scores: replies", bars(scores, scores.map((_, i) => (low + i * (high - low) / 20).toFixed(2)))),
    panel("Share of a group that is right: groups", bars(rates, rates.map((_, i) => `${Math.round(100 * i / bins)}%`))),
  ];
  if (summary) {
    parts.unshift(panel("pass@k and maj@k, by k, with 95 % intervals", curves([summary.pass_at, summary.maj_at]),
      el("div", { class: "legend" }, el("span", {}, dot("var(--accent)"), "pass@k"), el("span", {}, dot("var(--limit)"), "maj@k"))));
    parts.push(panel("Named rewards", table(["reward", "mean", "scored", "without a score"],
      Object.entries(summary.rewards).map(([name, row]) => [name, number(row.mean), number(row.scored), number(row.without_score)]))));
    const levels = Object.entries(summary.levels);
    if (levels.length) parts.push(panel("pass@1 by level", table(["level", "value", "95 % interval", "tasks"],
      levels.map(([name, row]) => [name, number(row.value), interval(row), number(row.tasks)]))));
    parts.push(panel("The run", table(["", ""], about(run))));
  }
  const hint = el("span", { class: "keys" }, el("kbd", {}, "j"), " opens the first group   ", el("kbd", {}, "/"), " searches");
  if (groups.length === 0) return [el("p", { class: "empty" }, "No group is on disk yet. Reload the page when some are."),
    el("div", { class: "plots" }, ...parts.slice(-1))];
  const note = run.about ? [el("p", { class: "about" }, run.about)] : [];
  return [el("div", { class: "top" }, el("h2", {}, "Overview"), hint), ...note, el("div", { class: "plots" }, ...parts)];
}

function dot(colour) {
  const made = el("span", { class: "dot" });
  made.style.background = colour;
  return made;
}

const interval = (row) => (row.low === null ? "–" : `${number(row.low)} to ${number(row.high)}`);

function table(head, rows) {
  return el("table", {}, head.some(Boolean) ? el("thead", {}, el("tr", {}, ...head.map((name) => el("th", {}, name)))) : null,
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => text(el("td"), String(cell)))))));
}

function about(run) {
  const { plan, costs, summary } = run, rows = [
    ["environment", `${plan.environment.id} ${JSON.stringify(plan.environment.kwargs)}`],
    ["policy", JSON.stringify(plan.policy)],
    ["data", `${plan.data.tasks.toLocaleString("en")} tasks, sha256 ${plan.data.sha256}`],
    ["verifier", `sha256 ${plan.verifier.sha256}`], ["seed", plan.seed],
    ["cut off", summary.truncated === null ? "–" : `${(100 * summary.truncated).toFixed(1)}%`],
    ["characters of a reply", summary.characters ? `${number(Math.round(summary.characters.mean))} on average, ${number(summary.characters.p95)} p95` : "–"],
    ["seconds", `${number(costs.seconds)} answering, ${number(costs.judging_seconds)} judging`],
  ];
  if (costs.reply_tokens !== null) rows.push(["tokens", `${number(costs.prompt_tokens)} read, ${number(costs.reply_tokens)} written`]);
  if (plan.rescored_from) rows.push(["judged again", plan.rescored_from]);
  rows.push(["versions", Object.entries(plan.versions).map(([name, version]) => `${name} ${version}`).join(", ")]);
  return rows;
}
