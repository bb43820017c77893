// Cache entries as a tree by shared prefix.

/**
 * An entry, or a prefix that several share and none is (entry: null).
 * tokens: its length from the beginning.
 * @typedef {{key: string, entry: CacheEntry | null, tokens: number,
 *   children: TreeNode[]}} TreeNode
 */

/**
 * The trees of all entries: a child begins with all of its parent's tokens.
 * @param {CacheEntry[]} entries
 * @returns {TreeNode[]} the one used last first, also among siblings
 */
export function treeOf(entries) {
  /** @type {TreeNode} */
  const root = { key: "", entry: null, tokens: 0, children: [] };
  const open = [root]; // from the root to the entry before
  const inOrder = [...entries].sort((a, b) => a.order - b.order);
  for (const entry of inOrder) {
    const shared = entry.shared_tokens;
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
 * Sorts what is below.
 * @param {TreeNode} node
 * @returns {number} Unix time of the last use of it or what is below
 */
function sort(node) {
  const uses = new Map(node.children.map((child) => [child, sort(child)]));
  node.children.sort((a, b) => (uses.get(b) ?? 0) - (uses.get(a) ?? 0));
  return Math.max(node.entry?.last_use ?? 0, ...uses.values());
}
