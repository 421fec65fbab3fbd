import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { excerptOf, isMarkdown } from "../src/documents/excerpt";
import { SourceText } from "../src/documents/source-text";

const placeIn = (text: string, quote: string) => {
  const start = text.indexOf(quote);
  return { start, end: start + quote.length };
};
const source = (text: string, quote: string, document = "a.md") =>
  renderToStaticMarkup(<SourceText document={document} text={text} place={placeIn(text, quote)} />);
const card = (text: string, quote: string) =>
  renderToStaticMarkup(<SourceText document="a.md" {...excerptOf(text, placeIn(text, quote))} />);

const TABLE = "# Fairs\n\n| town | fair |\n|---|---|\n| Sennick | Kelp Fair |\n| Brindle | Corn Fair |\n";

test.each([
  ["## The Kelp Fair\n\nIt is old.", "## The Kelp Fair", "<h2><mark>The Kelp Fair</mark></h2>"],
  [
    "- one\n- the **Kelp** Fair\n",
    "the **Kelp** Fair",
    "<mark>the </mark><strong><mark>Kelp</mark></strong><mark> Fair</mark>",
  ],
  ["Here **Kelp Fair** is.", "Kelp Fair", "<strong><mark>Kelp Fair</mark></strong>"],
  ["A 🙂 fair.\n\nNext.", "A 🙂 fair.", "<p><mark>A 🙂 fair.</mark></p>"],
])("the quote of %j is marked in its Markdown", (text, quote, html) => {
  expect(source(text, quote)).toContain(html);
});

test("a quote over several paragraphs is marked in each", () => {
  expect(source("One.\n\nTwo.\n\nThree.", "One.\n\nTwo.").match(/<mark>/g)).toHaveLength(2);
});

test("a table is a table, in the document and in the card of a source", () => {
  const row = "| Sennick | Kelp Fair |";
  for (const html of [source(TABLE, row), card(TABLE, row)]) {
    expect(html).toContain("<th>town</th>");
    expect(html).toContain("<mark>Kelp Fair</mark>");
    expect(html).not.toContain("|");
  }
  expect(card(TABLE, "Corn Fair")).toContain("<mark>Corn Fair</mark>");
});

test("rows without their header and a quoted header are tables, too", () => {
  expect(card("| Sennick | Kelp Fair |\n| Brindle | Corn Fair |", "Kelp Fair")).toMatch(
    /<td><mark>Kelp Fair<\/mark><\/td>/,
  );
  const header = card(TABLE, "| town | fair |\n|---|---|\n| Sennick | Kelp Fair |");
  expect(header).toContain("<table>");
  expect(header).not.toContain("|");
});

test("the card of a source has the words around the quote in its paragraph only", () => {
  const html = card("Before.\n\nA long town. The Kelp Fair. It is old.\n\nAfter.", "The Kelp Fair.");
  expect(html).toContain("A long town. <mark>The Kelp Fair.</mark> It is old.");
  expect(html).not.toMatch(/Before|After/);
});

test("code, tables of values and plain texts stay as they are", () => {
  expect(source("# not a heading\nx = 1", "x = 1", "a.py")).toContain("# not a heading\n<mark>x = 1</mark>");
  expect(["a.md", "a/b.PDF", "web page", "mail.eml"].map(isMarkdown)).toEqual([true, true, true, true]);
  expect(["a.txt", "a.csv", "b.ts"].map(isMarkdown)).toEqual([false, false, false]);
});

test("a source loads nothing and leads nowhere", () => {
  const html = source("![x](http://e.org/x.png) [Kelp](http://e.org) <script>1</script>", "Kelp");
  expect(html).not.toMatch(/<img|<a |<script/);
});
