import { expect, test } from "vitest";
import { when } from "../src/format";
import { outcomeOf, pauseOf } from "../src/outcome";
import { hrefOf, parse } from "../src/route";
import { grouped } from "../src/run/findings";
import { markdownOf } from "../src/run/export";
import { linkedIn } from "../src/run/linked";
import { withFootnotes } from "../src/run/markdown";
import { draftOf, findingsOf, workOf } from "../src/run/sentences";
import { csvOf } from "../src/runs/csv";
import { filtersIn, queryOf } from "../src/runs/filters";
import type { Answer, Citation, Note, Run, Thread } from "../src/types";

function citation(title: string, ends?: number[]): Citation {
  const place = { passage: title, document: title, quote: `${title} said so`, start: 0, end: 1 };
  return { ...place, title, ...(ends && { sentence_ends: ends }) };
}

const ANSWER = {
  text: "🙂 One. Two.",
  citations: [citation("A", [6]), citation("B", [6, 11])],
  status: "answered",
} as Answer;

test("footnotes follow the sentences that they support, counted in characters", () => {
  const marked = (answer: Pick<Answer, "text" | "citations">) =>
    withFootnotes(answer).replaceAll(/\(#footnote-\w+-/g, "(#");
  expect(marked(ANSWER)).toBe("🙂 One.[1](#1)[2](#2) Two.[2](#2)");
  expect(marked({ text: "Kelp Fair", citations: [citation("A")] })).toBe("Kelp Fair[1](#1)");
});

test("an address names a source by its number, or by its passage if the numbers have changed", () => {
  const named = (query: string) => linkedIn(ANSWER.citations, new URLSearchParams(query));
  expect(named("")).toEqual({ citation: null, notice: "" });
  expect(named("citation=2").citation?.title).toBe("B");
  expect(named("citation=1&passage=B").citation?.title).toBe("B");
  for (const wrong of ["citation=3", "citation=0", "citation=x", "citation=1&passage=gone"]) {
    expect(named(wrong).citation).toBeNull();
    expect(named(wrong).notice).toContain("it has 2 sources.");
  }
});

test("an exported answer has its footnotes and quotes", () => {
  expect(markdownOf({ ...ANSWER, question: "How many?" })).toBe(
    "# How many?\n\n🙂 One.[^1][^2] Two.[^2]\n\n[^1]: A: “A said so”\n[^2]: B: “B said so”\n",
  );
  expect(markdownOf({ ...ANSWER, question: "?", text: "A[^2]", citations: [] })).toContain("A\\[^2]\n");
});

test("an exported answer has no image, link, footnote or HTML of a document", () => {
  const planted = "![x](https://e.org/a.png) [^1] <img src=x>";
  const cited = { ...citation(`T ${planted}`), quote: `Q ${planted}` };
  const made = markdownOf({ ...ANSWER, question: `? ${planted}`, text: `A ${planted}`, citations: [cited] });
  const escaped = "!\\[x](https://e.org/a.png) \\[^1] \\<img src=x>";
  expect(made).toBe(`# ? ${escaped}\n\nA ${escaped}[^1]\n\n[^1]: T ${escaped}: “Q ${escaped}”\n`);
});

test("a step is a sentence with its findings, without internal fields", () => {
  const plan = { "1": { question: "Who built it?", needs: [], planned: "Who built it?" } };
  expect(workOf("plan", true)).toBe("Planning the steps");
  expect(workOf("some_node", false)).toBe("Some node");
  expect(findingsOf({ node: "plan", update: { plan, wave: ["1"], halted: false } })).toEqual(["“Who built it?”"]);
  const coarse = { "1": ["ab".repeat(32), "cd".repeat(32)] };
  expect(findingsOf({ node: "retrieve_coarse", update: { coarse } })).toEqual(["Found 2 passages"]);
  const notes = { "1": { question: "Who?", finding: "Bastian Oake", passages: [] } };
  expect(findingsOf({ node: "draft", update: { notes, halted: true } })).toEqual([
    "Found: Bastian Oake",
    "The budget is used up.",
  ]);
});

test("findings of the same question are one sentence", () => {
  const notes: Note[] = ["a", "b"].map((finding) => ({ question: "Who?", finding, passages: [] }));
  expect(grouped([...notes, { question: "Where?", finding: "c", passages: [] }])).toHaveLength(2);
});

function listed(id: string, more: Partial<Thread> = {}): Thread {
  return { id, question: "", answer: null, ...more } as Thread;
}

test("a table for a spreadsheet contains no formulas", () => {
  const [, row] = csvOf([listed("1", { question: '=HYPERLINK("x")', answer: 'a "b", c' })]).split("\r\n");
  expect(row).toContain(`"'=HYPERLINK(""x"")"`);
  expect(row).toContain('"a ""b"", c"');
});

test("filters without a value are left out, and the last day is included", () => {
  const filters = filtersIn(new URLSearchParams("find=&status=failed&until=2026-02-28&other=1"));
  expect(filters).toEqual({ status: "failed", until: "2026-02-28" });
  expect(queryOf(filters).until).toBe("2026-03-01T00:00:00.000Z");
});

test("the outcome of a run is that of its stream until it is resumed", () => {
  const run = { thread: { state: "done", outcome: "unknown" } } as Run;
  const following = { end: null, begun: true, over: false, going: false };
  expect(outcomeOf(run, following)).toBe("unknown");
  expect(outcomeOf(run, { ...following, going: true })).toBe("running");
  expect(outcomeOf(run, { ...following, end: { kind: "stopped" }, over: true })).toBe("stopped");
  expect(outcomeOf(run, { ...following, end: { kind: "answer", answer: ANSWER }, over: true })).toBe("answered");
});

test("a run that waits for its turn is queued on its page as in the lists, until its first step", () => {
  const run = { thread: { state: "queued", outcome: "queued" } } as Run;
  const following = { end: null, begun: false, over: false, going: false };
  expect(outcomeOf(run, following)).toBe("queued");
  expect(outcomeOf(run, { ...following, begun: true })).toBe("running");
});

test("a list is loaded again while it has a run that is not finished", () => {
  expect(pauseOf([listed("1", { outcome: "answered" })])).toBe(false);
  for (const outcome of ["queued", "running"] as const) {
    expect(pauseOf([listed("1", { outcome }), listed("2", { outcome: "failed" })])).toBeGreaterThan(0);
  }
});

test("of a reply in JSON only the text for people is shown while it is written", () => {
  expect(draftOf('{"steps": [{"thought": "hm", "question": "Who built')).toBe("Who built");
  expect(draftOf('{"steps": [{"thought": "hm", "que')).toBe("");
  expect(draftOf('```json\n{"answer": "The \\"Kelp\\" Fair"')).toBe('The "Kelp" Fair');
  expect(draftOf('[{"status": "PASS"}]')).toBe("");
  expect(draftOf("Plain words")).toBe("Plain words");
});

test("a damaged or too deep address leads to no view", () => {
  expect(parse("#/runs/%E0%A4%A").id).toBe("%E0%A4%A");
  expect(parse("#/runs/a/b").view).toBe("?");
  expect(parse(hrefOf("runs", "a/b")).id).toBe("a/b");
});

test("a moment of another day has its date", () => {
  const now = new Date("2026-03-02T12:00:00");
  expect(when("2026-03-02T10:05:00", now)).toMatch(/^today, 10:05/);
  expect(when("2026-03-01T10:05:00", now)).toMatch(/Mar 1, 2026, 10:05/);
  expect(when("never", now)).toBe("");
});
