// Cache entries as a tree by shared prefix.

/**
 * An entry, or a prefix that several share and none is (entry: null).
 * tokens: its length from the beginning.
 * @typedef {{key: string, entry: CacheEntry | null, tokens: number,
 *   children: TreeNode[]}} TreeNode
 */

/** @typedef {{entry: CacheEntry, shared: number}} Ordered */

/**
 * The trees of all entries: a child begins with all of its parent's tokens.
 * Where the server does not tell what entries share, only those that end in
 * the same block are known to.
 * @param {CacheEntry[]} entries
 * @returns {TreeNode[]} the one used last first, also among siblings
 */
export function treeOf(entries) {
  /** @type {TreeNode} */
  const root = { key: "", entry: null, tokens: 0, children: [] };
  const open = [root]; // from the root to the entry before
  for (const { entry, shared } of inOrder(entries)) {
    /** @type {TreeNode | undefined} */
    let fork;
    while ((open.at(-1)?.tokens ?? 0) > shared) fork = open.pop();
    let parent = open.at(-1) ?? root;
    if (fork && parent.tokens < shared) {
      const key = `${fork.key}/${shared}`;
      parent.children.pop();
      const prefix = { key, entry: null, tokens: shared, children: [fork] };
      parent.children.push(prefix);
      open.push(prefix);
      parent = prefix;
    }
    const { id, tokens } = entry;
    /** @type {TreeNode} */
    const node = { key: id, entry, tokens, children: [] };
    parent.children.push(node);
    open.push(node);
  }
  sort(root);
  return root.children;
}

/**
 * Whether the server tells what entries share.
 * @param {CacheEntry[]} entries
 * @returns {boolean}
 */
export function sharingIsTold(entries) {
  return entries.every((entry) => entry.shared_tokens !== undefined);
}

/**
 * The entries in the order of their tokens, each with the number of tokens it
 * shares with the one before.
 * @param {CacheEntry[]} entries
 * @returns {Ordered[]}
 */
function inOrder(entries) {
  if (sharingIsTold(entries)) {
    return [...entries]
      .sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
      .map((entry) => ({ entry, shared: entry.shared_tokens ?? 0 }));
  }
  const block = (/** @type {CacheEntry} */ entry) => entry.id.split(":")[0];
  const sorted = [...entries].sort((a, b) =>
    block(a) === block(b) ? a.tokens - b.tokens : a.id < b.id ? -1 : 1,
  );
  return sorted.map((entry, at) => {
    const before = sorted[at - 1];
    const same = before && block(before) === block(entry);
    return { entry, shared: same ? before.tokens : 0 };
  });
}

/**
 * Sorts what is below.
 * @param {TreeNode} node
 * @returns {number} Unix time of the last use of it or what is below
 */
function sort(node) {
  const uses = new Map(node.children.map((child) => [child, sort(child)]));
  node.children.sort((a, b) => (uses.get(b) ?? 0) - (uses.get(a) ?? 0));
  return Math.max(node.entry?.last_use ?? 0, ...uses.values());
}
