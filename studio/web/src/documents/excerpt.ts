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

/** The quote with the words around it in its paragraph; of a table its header and the quoted rows. */
export function excerptOf(text: string, { start, end }: Span): string {
  const from =
    start -
    (text
      .slice(0, start)
      .split(/\n\s*\n/)
      .at(-1)?.length ?? 0);
  const to = end + (text.slice(end).split(/\n\s*\n/)[0]?.length ?? 0);
  const block = text.slice(from, to);
  const place = { start: start - from, end: end - from };
  if (/^\s*\|/m.test(block)) return tableOf(marked(block, place));
  const { before, quoted, after } = around(block, place, CONTEXT);
  const first = before.replace(/^… \S* /, "… ");
  const whole = first + quoted + after.replace(/ \S* …$/, " …");
  return marked(whole, { start: first.length, end: first.length + quoted.length });
}

const RULE = /^\s*\|?[\s:|-]*-[\s:|-]*$/;

/** The header and the marked rows of a table; rows that were cut from their header get an empty one. */
function tableOf(block: string): string {
  const lines = block.split("\n");
  const rule = lines.findIndex((line) => RULE.test(line));
  const head = rule > 0 ? lines.slice(rule - 1, rule + 1) : [];
  const first = lines.findIndex((line) => line.includes(OPEN));
  const last = lines.findLastIndex((line) => line.includes(CLOSE));
  const rows = first < 0 ? lines.slice(rule + 1) : lines.slice(first, last + 1).filter((line) => !RULE.test(line));
  if (rule > 0 && first === rule - 1) return [rows[0], lines[rule], ...rows.slice(1)].join("\n");
  const cells = (rows[0]?.match(/\|/g)?.length ?? 2) - 1;
  const empty = ["|" + " |".repeat(cells), "|" + "---|".repeat(cells)];
  return [...(head.length ? head : empty), ...rows].join("\n");
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
