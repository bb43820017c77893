// Cache entries as a tree by shared prefix.

/**
 * A prefix that adds less than this to its parent is no row: it is of the words
 * with which any two messages may begin, and of what the model's template puts
 * before each.
 */
const kLeastPrefix = 32;

/**
 * An entry, or a prefix that several share and none is (entry: null).
 * tokens: its length from the beginning. text: what it says where it leaves its
 * parent; "": the server did not tell.
 * @typedef {{key: string, entry: CacheEntry | null, tokens: number,
 *   text: string, children: TreeNode[]}} TreeNode
 */

/**
 * The trees of all entries: a child begins with all of its parent's tokens.
 * Prefixes that tell too little are left out.
 * @param {CacheEntry[]} entries
 * @returns {TreeNode[]} the one used last first, also among siblings
 */
export function treeOf(entries) {
  /** @type {TreeNode} */
  const root = { key: "", entry: null, tokens: 0, text: "", children: [] };
  // From the root to the entry before; each with the first entry in it.
  /** @type {{node: TreeNode, first: CacheEntry | null}[]} */
  const open = [{ node: root, first: null }];
  const inOrder = [...entries].sort((a, b) => a.order - b.order);
  for (const entry of inOrder) {
    const shared = entry.shared_tokens;
    let left = undefined;
    while ((open.at(-1)?.node.tokens ?? 0) > shared) left = open.pop();
    let parent = open.at(-1)?.node ?? root;
    if (left && parent.tokens < shared) {
      const { node: fork, first } = left;
      parent.children.pop();
      const prefix = {
        key: `${fork.key}/${shared}`,
        entry: null,
        tokens: shared,
        text: fork.text,
        children: [fork],
      };
      fork.text = first ? textAt(first, shared) : "";
      parent.children.push(prefix);
      open.push({ node: prefix, first });
      parent = prefix;
    }
    /** @type {TreeNode} */
    const node = {
      key: entry.id,
      entry,
      tokens: entry.tokens,
      text: textAt(entry, shared),
      children: [],
    };
    parent.children.push(node);
    open.push({ node, first: entry });
  }
  root.children = root.children.flatMap((child) => thinned(child, root));
  sort(root);
  return root.children;
}

/**
 * The node, or its children in its place.
 * @param {TreeNode} node
 * @param {TreeNode} parent
 * @returns {TreeNode[]}
 */
function thinned(node, parent) {
  const small = !node.entry && node.tokens - parent.tokens < kLeastPrefix;
  const above = small ? parent : node;
  const children = node.children.flatMap((child) => thinned(child, above));
  if (small) return children;
  node.children = children;
  return [node];
}

/**
 * What the entry says from that branch on.
 * @param {CacheEntry} entry
 * @param {number} from tokens
 * @returns {string}
 */
function textAt({ texts }, from) {
  return texts?.find((one) => one.from === from)?.text ?? "";
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
