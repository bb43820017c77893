import assert from "node:assert/strict";
import test from "node:test";
import { treeOf } from "../page/js/cache-tree.js";

/** What a letter stands for: a prefix longer by one gets its own row. */
const kLetter = 40;

/** The letters that two texts begin with. */
function common(one, other) {
  let shared = 0;
  while (shared < one.length && one[shared] === other[shared]) ++shared;
  return shared;
}

/**
 * Entries as a server tells of them, for prompts written as letters of so many
 * tokens.
 */
function entriesOf(texts, letter = kLetter) {
  const sorted = [...texts].sort();
  return sorted.map((text, order) => {
    const shared = common(sorted[order - 1] ?? "", text);
    const later = sorted.slice(order + 1).map((it) => common(text, it));
    const forks = later.filter((it) => it > shared && it < text.length);
    const branches = [...new Set([shared, ...forks])].sort((a, b) => a - b);
    return {
      id: `${text}:${text.length}`,
      tokens: text.length * letter,
      last_use: texts.indexOf(text),
      order,
      shared_tokens: shared * letter,
      texts: branches.map((from) => {
        return { from: from * letter, text: text.slice(from) };
      }),
    };
  });
}

/** Nested lists of what each node adds: `[text or *prefix, children...]`. */
function shape(nodes) {
  return nodes.map(({ entry, tokens, children }) => [
    entry ? entry.id.split(":")[0] : `*${tokens / kLetter}`,
    ...shape(children),
  ]);
}

/** Nested lists of what each node says. */
function says(nodes) {
  return nodes.map(({ text, children }) => [text, ...says(children)]);
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

test("each row says what it adds to its parent's prefix", () => {
  const made = treeOf(entriesOf(["abc", "abcd", "abx", "abxyz", "q"]));
  assert.deepEqual(says(made), [["q"], ["abc", ["x", ["yz"]], ["c", ["d"]]]]);
  const nested = treeOf(entriesOf(["abcd", "abce", "abf", "g"]));
  assert.deepEqual(says(nested), [
    ["g"],
    ["abcd", ["f"], ["cd", ["e"], ["d"]]],
  ]);
});

test("where the server does not tell, nothing is said", () => {
  const entries = entriesOf(["ab", "ac"]).map(({ texts: _, ...it }) => it);
  assert.deepEqual(says(treeOf(entries)), [["", [""], [""]]]);
});

test("chains of tiny prefixes are no rows", () => {
  const forked = ["ax", "abx", "abcx", "abcdx", "abcdey"];
  const flat = treeOf(entriesOf(forked, 6));
  assert.deepEqual(
    flat.map((node) => node.children.length),
    [0, 0, 0, 0, 0],
  );
  assert.deepEqual(
    flat.map((node) => node.text),
    ["ey", "x", "x", "x", "x"],
  );
  // Together they grow to one that tells something: 36 tokens.
  const long = treeOf(entriesOf(["ax", "abcdefx", "abcdefgx", "abcdefgy"], 6));
  assert.deepEqual(says(long), [["bcdefgx", ["y"], ["x"], ["x"]], ["x"]]);
});

test("small entries keep their rows", () => {
  const made = treeOf(entriesOf(["a", "ab", "ac"], 1));
  assert.deepEqual(says(made), [["a", ["c"], ["b"]]]);
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
        const shared = common(a, b);
        if (a < b && shared > 0) nodes.add(a.slice(0, shared));
      }
    }
    const found = new Map();
    const walk = (node, above) => {
      const length = node.tokens / kLetter;
      const texts = [...nodes].filter((it) => it.length === length);
      let leaf = node;
      while (!leaf.entry) leaf = leaf.children[0];
      const own = leaf.entry.id.slice(0, length);
      const adds = own.slice(above.length);
      assert.ok(node.text.startsWith(adds), `${own} says ${node.text}`);
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
