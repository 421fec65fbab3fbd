import { expect, test } from "vitest";
import { findQuote, pagesOf } from "../src/documents/quote";

/** The marked text of each item. */
function marked(items: string[], quote: string): string[] {
  return findQuote(items, quote).map(({ item, start, end }) => items[item]?.slice(start, end) ?? "");
}

test("a quote inside an item is found at its exact position", () => {
  expect(findQuote(["The light was built in 1903."], "built in 1903")).toEqual([{ item: 0, start: 14, end: 27 }]);
});

test("a quote over several lines is one piece per item", () => {
  const items = ["The light was built", " ", "by Edric Gannow", "in 1903."];
  expect(marked(items, "was built by Edric Gannow in 1903")).toEqual(["was built", "by Edric Gannow", "in 1903"]);
});

test("a hyphenated word is found as the server has joined it", () => {
  expect(marked(["The light-", "house and its infor-", "mation"], "lighthouse and its information")).toEqual([
    "light-".slice(0, 5),
    "house and its infor",
    "mation",
  ]);
});

test("ligatures, accents and quotation marks may have another form", () => {
  expect(marked(["the ﬁrst “o\u0308ffentliche” oﬃce"], 'first "öffentliche" office')).toEqual([
    "ﬁrst “o\u0308ffentliche” oﬃce",
  ]);
});

test("a quote that begins inside a ligature marks the whole ligature", () => {
  expect(marked(["oﬃce"], "ice")).toEqual(["ﬃce"]);
});

test("characters outside the basic plane count as two units", () => {
  expect(findQuote(["𝔸 tower 🗼 here"], "here")).toEqual([{ item: 0, start: 12, end: 16 }]);
});

test("a missing or empty quote is not found", () => {
  expect(findQuote(["The light."], "The tower")).toEqual([]);
  expect(findQuote(["The light."], "")).toEqual([]);
  expect(findQuote(["The light."], "…")).toEqual([]);
});

test("the location of a PDF names its pages", () => {
  expect(pagesOf("p. 12")).toEqual([12, 12]);
  expect(pagesOf("p. 3–4")).toEqual([3, 4]);
  expect(pagesOf("p. 1, 5th page")).toEqual([5, 5]);
  expect(pagesOf("p. A-2, iv–1, 4th–15th page")).toEqual([4, 15]);
  expect(pagesOf("slide 3")).toBeNull();
  expect(pagesOf("")).toBeNull();
});
