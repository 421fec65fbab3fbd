import { QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { problemOf } from "../src/connection";
import { lookOf } from "../src/outcome";
import { Problem, split } from "../src/parts";
import { AnswerView } from "../src/run/answer";
import { Feedback } from "../src/run/feedback";
import { withQuotes } from "../src/run/findings";
import { client } from "../src/server";
import type { Answer, Citation, Note, Thread } from "../src/types";

const ANSWER = { status: "answered", text: "Kelp Fair", citations: [], notes: [], warnings: [] } as unknown as Answer;

const ignore = () => undefined;
const rendered = (node: ReactNode) =>
  renderToStaticMarkup(<QueryClientProvider client={client}>{node}</QueryClientProvider>);
const shown = (more: Partial<Answer>) => rendered(<AnswerView answer={{ ...ANSWER, ...more }} onOpen={ignore} />);
const words = (html: string) => html.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");

const support = (score: number, more = {}) => ({ support: { score, answerable: 0.4, ...more } });

test.each([
  [{}, "answered"],
  [support(0.91), "answered"],
  [support(0.28, { weak: true }), "weak"],
  [{ status: "unknown", ...support(0.02) }, "unknown"],
] as const)("the color of an answer with %j is that of %s", (more, look) => {
  expect(lookOf({ ...ANSWER, ...more })).toBe(look);
  expect(shown(more)).toContain(`answer is-${look}`);
});

test("support is in words, without figures", () => {
  expect(words(shown(support(0.28, { weak: true })))).toMatch(/weakly supported\s+by its sources/);
  expect(words(shown(support(0.9)))).toMatch(/answered\s+and supported by its sources/);
  expect(words(shown({ method: "par-rag" }))).toMatch(/not checked\s+against its sources/);
  expect(shown(support(0.28))).not.toContain("28");
});

test("a reply without a search has no status", () => {
  expect(shown({ method: "chat" })).not.toContain("chip");
  expect(shown({ method: "chat", hops: [] })).toContain("chip");
});

test("another answer of the sources is shown with that of the run", () => {
  const citation = { passage: "p", title: "Oake", quote: "Oake Fair" } as Citation;
  const html = words(shown(support(0.1, { weak: true, also: { text: "Oake Fair", citations: [citation] } })));
  expect(html).toContain("Kelp Fair");
  expect(html).toMatch(/The sources also say: Oake Fair\s+Oake/);
});

test("a document's own marks are no footnotes", () => {
  const citation = { passage: "p", title: "Oake", quote: "Oake Fair" } as Citation;
  const html = shown({ text: "See [3], [1](#footnote-1)", citations: [citation] });
  expect(html.match(/class="footnote"/g)).toHaveLength(1);
  expect(words(html)).toContain("See [3]");
});

test("ratings are drawn", () => {
  const html = rendered(<Feedback thread={{ options: {} } as Thread} />);
  expect(html.match(/<svg/g)).toHaveLength(2);
  expect(html).not.toMatch(/\p{Extended_Pictographic}/u);
});

test("findings have their own quotes, also two in one passage", () => {
  const note = (finding: string): Note => ({ question: "Who?", finding, passages: ["p"] });
  const quote = (text: string) => ({ passage: "p", quote: text }) as Citation;
  const state = {
    notes: { 1: { ...note("a"), citations: [quote("A")] }, 2: { ...note("b"), citations: [quote("B")] } },
  };
  const quotes = withQuotes([note("b"), note("a"), note("c")], state as never).map((each) => each.citations);
  expect(quotes).toEqual([[quote("B")], [quote("A")], []]);
});

test("of a long message the first sentence is shown, and the rest on a click", () => {
  const long = `a/b.pdf: The file cannot be read. ${"It has a damaged table of contents. ".repeat(6)}`;
  expect(split(long)[0]).toBe("a/b.pdf: The file cannot be read.");
  expect(split("c.md: is empty. Fill it, or leave it out.")[1]).toBe("");
  const [first, rest] = split("word ".repeat(80));
  expect(first.length).toBeLessThan(170);
  expect(`${first.replace("…", "")} ${rest}`.split(" ").filter(Boolean)).toHaveLength(80);
  expect(rendered(<Problem>{long}</Problem>)).toContain("<summary>More</summary>");
});

test("a lost model server is named with what to do", () => {
  expect(problemOf({ checks: { database: "ok", model: "ok" } })).toBe("");
  expect(problemOf({})).toBe("");
  expect(problemOf({ checks: { model: "no answer within 3 s" } })).toMatch(/no answer within 3 s.*SLEUTH_MODEL_URL/);
});
