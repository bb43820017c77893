import assert from "node:assert/strict";
import test from "node:test";
import { parseMarkdown } from "../page/js/markdown.js";

/** The tree as compact text: what the elements would be. */
function shape(it) {
  if (Array.isArray(it)) return it.map(shape).join("");
  switch (it.kind) {
    case "text":
      return it.text;
    case "break":
      return "<br>";
    case "rule":
      return "<hr>";
    case "code":
      return `<code${it.language ? ` ${it.language}` : ""}>${it.text}</code>`;
    case "list": {
      const tag = it.ordered ? `ol ${it.start}` : "ul";
      return `<${tag}>${it.items.map((one) => `<li>${shape(one)}`).join("")}</>`;
    }
    case "quote":
      return `<quote>${shape(it.blocks)}</>`;
    case "heading":
      return `<h${it.level}>${shape(it.content)}</>`;
    case "link":
      return `<a ${it.href}>${shape(it.content)}</>`;
    case "paragraph":
      return `<p>${shape(it.content)}</>`;
    default:
      return `<${it.kind}>${shape(it.content)}</>`;
  }
}

const cases = {
  "paragraphs end at blank lines": ["a\nb\n\nc", "<p>a\nb</><p>c</>"],
  headings: ["# One\n### Three ###", "<h1>One</><h3>Three</>"],
  "emphasis within emphasis": [
    "**bold *both* bold** _soft_ ~~gone~~",
    "<p><strong>bold <emphasis>both</> bold</> <emphasis>soft</> " +
      "<struck>gone</></>",
  ],
  "names with underscores and products stay": [
    "snake_case_name, 2 * 3 * 4, 5*6*7 of __init__",
    "<p>snake_case_name, 2 * 3 * 4, 5<emphasis>6</>7 of <strong>init</></>",
  ],
  "code keeps its marks": ["`a *b* <c>`", "<p><code>a *b* <c></code></>"],
  "code in double backticks": ["`` a`b ``", "<p><code>a`b</code></>"],
  "a lone backtick stays": ["a ` b", "<p>a ` b</>"],
  "a fence keeps its text": [
    "```py\n# no heading\n\n  *x*\n```\nafter",
    "<code py># no heading\n\n  *x*</code><p>after</>",
  ],
  "a fence that is still open": ["```\nx = 1", "<code>x = 1</code>"],
  "a longer fence holds a shorter": ["````\n```\n````", "<code>```</code>"],
  "lists within lists": [
    "- a\n  - b\n- c\n\n3. d\n4. e",
    "<ul><li><p>a</><ul><li><p>b</></><li><p>c</></>" +
      "<ol 3><li><p>d</><li><p>e</></>",
  ],
  "an item's code block": [
    "1. Run:\n\n   ```sh\n   ls\n   ```\n2. Done",
    "<ol 1><li><p>Run:</><code sh>ls</code><li><p>Done</></>",
  ],
  "quotes and rules": ["> a\n> b\n\n---", "<quote><p>a\nb</></><hr>"],
  links: [
    "[a](https://x.org/y_z) and https://x.org/q?a=1.",
    "<p><a https://x.org/y_z>a</> and <a https://x.org/q?a=1>" +
      "https://x.org/q?a=1</>.</>",
  ],
  "images become links": [
    "![a](https://x.org/i)",
    "<p><a https://x.org/i>a</></>",
  ],
  "escaped marks": ["\\*a\\* \\<b>", "<p>*a* <b></>"],
  "hard breaks": ["a  \nb\\\nc", "<p>a<br>b<br>c</>"],
  "HTML is text": [
    '<img src=x onerror="alert(1)"><script>',
    '<p><img src=x onerror="alert(1)"><script></>',
  ],
};
for (const [name, [text, wanted]] of Object.entries(cases)) {
  test(name, () => assert.equal(shape(parseMarkdown(text)), wanted));
}

test("no link can run or read something", () => {
  for (const href of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "//x.org",
    "/v1/cache",
    "blob:https://x.org/1",
    "file:///etc/passwd",
  ]) {
    const made = shape(parseMarkdown(`[a](${href}) <${href}>`));
    for (const [, target] of made.matchAll(/<a (\S+)>/g)) {
      assert.match(target, /^https?:/, made);
    }
  }
});

test("hostile texts take no long time", () => {
  const texts = ["*a ", "**a", "[", "![a](", "`a``b", "_a ", "> ", "- ", "~~a"];
  texts.push(
    "a*",
    "# ",
    "#\t ",
    "- a\n\n",
    "> a\n",
    "http://",
    "](",
    "* ",
    "\n",
  );
  for (const text of texts) {
    // Of this process alone, however busy the machine is.
    const before = process.cpuUsage();
    parseMarkdown(text.repeat(4000));
    parseMarkdown(`- ${text.repeat(4000)}\n`);
    const ms = process.cpuUsage(before).user / 1000;
    assert.ok(ms < 2000, `${JSON.stringify(text)}: ${ms} ms`);
  }
});
