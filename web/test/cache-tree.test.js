import assert from "node:assert/strict";
import test from "node:test";
import { treeOf } from "../page/js/cache-tree.js";

/** Entries as a server tells of them, for prompts written as words. */
function entriesOf(texts) {
  const sorted = [...texts].sort();
  return sorted.map((text, order) => {
    const before = sorted[order - 1] ?? "";
    let shared = 0;
    while (shared < before.length && before[shared] === text[shared]) ++shared;
    return {
      id: `${text}:${text.length}`,
      tokens: text.length,
      last_use: texts.indexOf(text),
      order,
      shared_tokens: shared,
    };
  });
}

/** Nested lists of what each node adds: `[text or *prefix, children...]`. */
function shape(nodes) {
  return nodes.map(({ entry, tokens, children }) => [
    entry ? entry.id.split(":")[0] : `*${tokens}`,
    ...shape(children),
  ]);
}

/** All nodes' texts found without the order: by comparing all with all. */
function parentOf(text, nodes) {
  const above = nodes.filter((it) => it !== text && text.startsWith(it));
  return above.sort((a, b) => b.length - a.length)[0] ?? "";
}

test("entries hang below their longest prefix, forks in between", () => {
  const made = treeOf(entriesOf(["abc", "abcd", "abx", "abxyz", "q"]));
  assert.deepEqual(shape(made), [
    ["q"],
    ["*2", ["abx", ["abxyz"]], ["abc", ["abcd"]]],
  ]);
});

test("a fork below an entry lies below it", () => {
  const made = treeOf(entriesOf(["a", "abbc", "abbd", "ac"]));
  assert.deepEqual(shape(made), [["a", ["ac"], ["*3", ["abbd"], ["abbc"]]]]);
});

test("random sets: each node's parent is its longest prefix", () => {
  let seed = 7;
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  for (let round = 0; round < 300; ++round) {
    const texts = new Set();
    for (let left = 1 + random(12); left > 0; --left) {
      const letters = Array.from({ length: 1 + random(6) }, () => random(2));
      texts.add(letters.join(""));
    }
    const nodes = new Set(texts);
    for (const a of texts) {
      for (const b of texts) {
        let shared = 0;
        while (shared < a.length && a[shared] === b[shared]) ++shared;
        if (a < b && shared > 0) nodes.add(a.slice(0, shared));
      }
    }
    const found = new Map();
    const walk = (node, above) => {
      const texts = [...nodes].filter((it) => it.length === node.tokens);
      let leaf = node;
      while (!leaf.entry) leaf = leaf.children[0];
      const own = leaf.entry.id.slice(0, node.tokens);
      assert.ok(texts.includes(own));
      assert.ok(!found.has(own), `${own} is there once`);
      found.set(own, above);
      node.children.forEach((child) => walk(child, own));
    };
    treeOf(entriesOf([...texts])).forEach((node) => walk(node, ""));
    const wanted = new Map();
    for (const it of nodes) wanted.set(it, parentOf(it, [...nodes]));
    assert.deepEqual(
      [...found].sort(),
      [...wanted].sort(),
      [...texts].join(" "),
    );
  }
});
