// Cache entries as a tree by shared prefix.

/**
 * A part of the tree: an entry, or a prefix that several share and none ends
 * with (entry: null). blocks: from the root on.
 * @typedef {{key: string, entry: CacheEntry | null, blocks: number,
 *   children: TreeNode[]}} TreeNode
 */

/**
 * One block on the way from the root, and the entries that end in it.
 * @typedef {{key: string, entries: CacheEntry[], steps: Map<string, Step>,
 *   depth: number}} Step
 */

/**
 * The trees of all entries. Where the server tells an entry's path, all
 * prefixes are seen; else only those that end within the same block.
 * @param {CacheEntry[]} entries
 * @returns {TreeNode[]} the one used last first, also among siblings
 */
export function treeOf(entries) {
  /** @type {Step} */
  const root = { key: "", entries: [], steps: new Map(), depth: 0 };
  for (const entry of entries) {
    const last = entry.id.split(":")[0] ?? entry.id;
    stepTo(root, entry.path ?? [last]).entries.push(entry);
  }
  return sorted([...root.steps.values()].flatMap(grow));
}

/**
 * @param {Step} root
 * @param {string[]} path
 * @returns {Step}
 */
function stepTo(root, path) {
  let at = root;
  for (const id of path) {
    let next = at.steps.get(id);
    if (!next) {
      const key = `${at.key}/${id}`;
      next = { key, entries: [], steps: new Map(), depth: at.depth + 1 };
      at.steps.set(id, next);
    }
    at = next;
  }
  return at;
}

/**
 * @param {Step} step
 * @returns {TreeNode[]}
 */
function grow(step) {
  // A chain of blocks without entries or forks is one step.
  while (step.entries.length === 0 && step.steps.size === 1) {
    const only = [...step.steps.values()][0];
    if (only) step = only;
  }
  const below = sorted([...step.steps.values()].flatMap(grow));
  if (step.entries.length === 0) {
    const { key, depth } = step;
    return [{ key, entry: null, blocks: depth, children: below }];
  }
  // Entries that end in the same block: each begins with the shorter ones.
  const byLength = [...step.entries].sort((a, b) => b.tokens - a.tokens);
  let children = below;
  for (const entry of byLength) {
    const node = { key: entry.id, entry, blocks: entry.blocks, children };
    children = [node];
  }
  return children;
}

/**
 * @param {TreeNode} node
 * @returns {number} Unix time of the last use of it or what is below
 */
export function lastUse(node) {
  const own = node.entry?.last_use ?? 0;
  return Math.max(own, ...node.children.map(lastUse));
}

/**
 * @param {TreeNode[]} nodes
 * @returns {TreeNode[]}
 */
function sorted(nodes) {
  return nodes.sort((a, b) => lastUse(b) - lastUse(a));
}
