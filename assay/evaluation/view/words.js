// What of two texts differs, word by word: the shortest edit (Myers 1986), within bounds.
// Runs are ["same" | "del" | "ins" | "both", text]; "both" is a space between changes.

const MOST = 1200; // edits looked for; beyond it, lines are compared, and beyond that nothing

export function words(first, second) {
  return compared(split(first), split(second))
    ?? compared(first.split(/(?<=\n)/), second.split(/(?<=\n)/))
    ?? [["del", first], ["ins", second]];
}

const split = (value) => value.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

function compared(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const middle = myers(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  if (middle === null) return null;
  const runs = [];
  const add = (kind, value) => {
    if (value === "") return;
    if (runs.length && runs.at(-1)[0] === kind) runs.at(-1)[1] += value;
    else runs.push([kind, value]);
  };
  add("same", a.slice(0, head).join(""));
  for (const [kind, value] of middle) add(kind, value);
  add("same", a.slice(a.length - tail).join(""));
  return runs.map(([kind, value], i) =>
    [kind === "same" && i > 0 && i < runs.length - 1 && !value.trim() ? "both" : kind, value]);
}

function myers(a, b) {
  const n = a.length, m = b.length, most = Math.min(n + m, MOST);
  const at = new Int32Array(2 * most + 3), mid = most + 1, trace = [];
  for (let d = 0; d <= most; d++) {
    trace.push(at.slice(mid - d - 1, mid + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && at[mid + k - 1] < at[mid + k + 1]);
      let x = down ? at[mid + k + 1] : at[mid + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      at[mid + k] = x;
      if (x >= n && x - k >= m) return path(trace, a, b);
    }
  }
  return null;
}

function path(trace, a, b) {
  const found = [];
  let x = a.length, y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const at = (k) => trace[d][k + d + 1], k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const before = down ? k + 1 : k - 1;
    const px = d === 0 ? 0 : at(before), py = d === 0 ? 0 : px - before;
    while (x > px && y > py && a[x - 1] === b[y - 1]) { found.push(["same", a[--x]]); y--; }
    if (d === 0) break;
    found.push(down ? ["ins", b[--y]] : ["del", a[--x]]);
  }
  return found.reverse();
}
