/** A quote in the text of its source, as Markdown with two characters around it that no syntax uses. */

import { around, type Span } from "./place";

const OPEN = "\uE000";
const CLOSE = "\uE001";

/** The text with the quote marked; the marks are inside the syntax of a heading, list or table row. */
export function marked(text: string, { start, end }: Span): string {
  const quote = text.slice(start, end);
  const lead = /^(?:[\s#>|*_+\-:`~]|\d+[.)]\s)*/.exec(quote)?.[0].length ?? 0;
  const inner = quote.slice(lead).replace(/[\s|*_`~]+$/, "");
  if (!inner) return text;
  const from = start + lead;
  return text.slice(0, from) + OPEN + inner + CLOSE + text.slice(from + inner.length);
}

const CONTEXT = 120;

/** The quote with the words around it in its paragraph; in a table with all its rows, cut from their header or not. */
export function excerptOf(text: string, { start, end }: Span): { text: string; place: Span } {
  const from =
    start -
    (text
      .slice(0, start)
      .split(/\n\s*\n/)
      .at(-1)?.length ?? 0);
  const to = end + (text.slice(end).split(/\n\s*\n/)[0]?.length ?? 0);
  const block = text.slice(from, to);
  const place = { start: start - from, end: end - from };
  if (/^\s*\|/.test(block)) return { text: block, place };
  const { before, quoted, after } = around(block, place, CONTEXT);
  const first = before.replace(/^… \S* /, "… ");
  return {
    text: first + quoted + after.replace(/ \S* …$/, " …"),
    place: { start: first.length, end: first.length + quoted.length },
  };
}

/** Markdown whose first table rows, if they were cut from their header, have an empty one. */
export function withHeader(markdown: string): string {
  const [row = "", rule = ""] = markdown.split("\n");
  if (!/^\s*\|/.test(row) || /^[\s|:-]+$/.test(rule)) return markdown;
  const cells = row.split("|").length - 2;
  return `|${" |".repeat(cells)}\n|${"---|".repeat(cells)}\n${markdown}`;
}

interface Node {
  type: string;
  value?: string;
  children?: Node[];
}

/** A rehype plugin that replaces the marks by elements, one for each text that the quote spans. */
export function markQuote() {
  let inside = false;
  const pieces = (text: string) =>
    text.split(/([\uE000\uE001])/).flatMap((value): Node[] => {
      if (value === OPEN || value === CLOSE) inside = value === OPEN;
      if (!value || value === OPEN || value === CLOSE) return [];
      const piece = { type: "text", value };
      const mark = { type: "element", tagName: "mark", properties: {}, children: [piece] };
      return [inside && value.trim() ? mark : piece];
    });
  const walk = (node: Node): Node[] => {
    if (node.type === "text") return pieces(node.value ?? "");
    if (node.children) node.children = node.children.flatMap(walk);
    return [node];
  };
  return (tree: Node) => void walk(tree);
}

const RENDERED = /\.(?:md|markdown|x?html?|pdf|docx|pptx|xlsx|od[tps]|rtf|epub|eml|msg|ipynb)$/i;

/** True if the text of a document is Markdown, which also readers of other formats return. */
export function isMarkdown(document: string): boolean {
  return RENDERED.test(document) || !/\.\w{1,10}$/.test(document);
}
