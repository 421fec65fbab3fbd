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
  tagName?: string;
  value?: string;
  children?: Node[];
  properties?: object;
}

const PHRASES = ["em", "strong", "code", "del", "a", "br"];

/** A rehype plugin that replaces the marks by elements, one for each part of the text that the quote spans. */
export function markQuote() {
  let inside = false;
  const walk = (parent: Node) => {
    const all: Node[] = [];
    let mark: Node[] | null = null;
    const add = (node: Node) => {
      if (inside && (mark ?? node.value?.trim() ?? node.tagName)) {
        if (!mark) all.push({ type: "element", tagName: "mark", properties: {}, children: (mark = []) });
        mark.push(node);
      } else all.push(node);
    };
    for (const node of parent.children ?? []) {
      if (node.type === "text") {
        for (const piece of (node.value ?? "").split(/([\uE000\uE001])/)) {
          if (piece === OPEN || piece === CLOSE) {
            inside = piece === OPEN;
            mark = null;
          } else if (piece) add({ type: "text", value: piece });
        }
      } else if (inside && PHRASES.includes(node.tagName ?? "") && !hasMark(node)) {
        add(node);
      } else {
        mark = null;
        walk(node);
        all.push(node);
      }
    }
    if (parent.children) parent.children = all;
  };
  return walk;
}

function hasMark({ value = "", children = [] }: Node): boolean {
  return value.includes(CLOSE) || children.some(hasMark);
}

const RENDERED = /\.(?:md|markdown|x?html?|pdf|docx|pptx|xlsx|od[tps]|rtf|epub|eml|msg|ipynb)$/i;

/** True if the text of a document is Markdown, which also readers of other formats return. */
export function isMarkdown(document: string): boolean {
  return RENDERED.test(document) || !/\.\w{1,10}$/.test(document);
}
