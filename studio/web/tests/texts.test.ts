import { expect, test } from "vitest";
import { serverRoot } from "../src/api";
import { fresh, linesOf, referencesIn } from "../src/changes";
import { around, placeOf } from "../src/documents/place";
import { changesOf } from "../src/edits";
import { hrefOf, parse } from "../src/route";
import { fieldsOf, parsed } from "../src/schema";
import { Parser } from "../src/sse";
import { textsOf } from "../src/texts";
import { pathTo } from "../src/branches";
import { FORKED, moment } from "./scene";

const HASH = "ab".repeat(32);

test.each([
  ["/", "/"],
  ["/index.html", "/"],
  ["/app", "/"],
  ["/app/", "/"],
  ["/inner/sleuth/", "/inner/sleuth/"],
  ["/inner/app/index.html", "/inner/"],
  ["/myapp/", "/myapp/"],
])("the server of a page at %s is at %s", (page, root) => {
  expect(serverRoot(page)).toBe(root);
});

test("an address is parsed as it was written", () => {
  const place = parse(hrefOf("runs", "a/b c", { tab: "explore", at: "1&2" }));
  expect([place.view, place.id, place.query.get("at")]).toEqual(["runs", "a/b c", "1&2"]);
});

test("events are complete wherever the stream is split", () => {
  const text = 'id: 1\nevent: step\ndata: {"a":\ndata: 1}\n\n: awake\n\nevent: token\r\ndata: x\r\n\r\n';
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new Parser();
    expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual([
      { id: "1", name: "step", data: '{"a":\n1}' },
      { id: "", name: "token", data: "x" },
    ]);
  }
});

test("a quote is found after surrogate pairs and after the document has changed", () => {
  expect(placeOf("🙂 the fair", { quote: "fair", start: 6, end: 10 })).toEqual({ start: 7, end: 11 });
  expect(placeOf("now the fair", { quote: "the fair", start: 0, end: 8 })).toEqual({ start: 4, end: 12 });
  expect(placeOf("something else", { quote: "the fair", start: 0, end: 8 })).toBeNull();
  expect(around("the fair", { start: 4, end: 8 })).toEqual({ before: "the ", quoted: "fair", after: "" });
});

test("a fork sends changed fields, with null for removed keys", () => {
  const before = { plan: { 1: "a", 2: "b" }, wave: ["1"], depth: 1 };
  const edits = { plan: { 2: "c" }, wave: ["1"], depth: 2 };
  expect(changesOf(edits, before)).toEqual({ plan: { 1: null, 2: "c" }, depth: 2 });
});

test("the changes of a step are its new entries", () => {
  const [, changed] = FORKED;
  expect(changed && fresh(changed, pathTo(FORKED, "e"))).toEqual({ plan: { 1: "other" } });
});

test("the changes of a step are the new items of a growing list, and all of a replaced one", () => {
  const before = moment("a", "", { changed: { searches: ["x"], evidence: ["p"] } });
  const after = moment("b", "a", { changed: { searches: ["x", "y"], evidence: ["q"] } });
  expect(fresh(after, [before, after])).toEqual({ searches: ["y"], evidence: ["q"] });
});

test("changes are shown by their main texts, passages by their number", () => {
  const update = {
    plan: { 1: { thought: "hm", question: "Who?" } },
    coarse: { 1: [HASH, HASH] },
    calls: { x: {} },
    halted: false,
  };
  expect(linesOf(update)).toEqual(["plan 1: Who?", "coarse 1: 2 passages"]);
  expect(linesOf({ notes: { answer: { finding: "" } }, verdict: { text: "x" } })).toEqual([
    "notes answer: –",
    "verdict: x",
  ]);
  expect(linesOf({ verdict: { support: { score: 0.3, weak: true } } })).toEqual([
    "verdict support: score 0.3, weak true",
  ]);
  expect(referencesIn(update)).toEqual([HASH]);
});

test("passages are separated from prompts", () => {
  const common = { id: "p", title: "T", text: "words", start: 1, end: 6, location: "p. 2" };
  const passage = { ...common, document_id: "d" };
  const { passages } = textsOf({ one: JSON.stringify(passage), two: "[system] …", three: '{"no": "passage"}' });
  expect([...passages]).toEqual([["one", { ...common, document: "d" }]]);
});

const SCHEMA = {
  properties: {
    top_k: { type: "integer", default: 5, minimum: 1, maximum: 100, description: "passages" },
    mode: { $ref: "#/$defs/Mode", default: "graph" },
    threshold: { anyOf: [{ type: "number", minimum: 1 }, { type: "null" }], default: null },
    plan: { type: "boolean", default: true },
    hops: { type: "object", default: {} },
  },
  $defs: { Mode: { enum: ["keyword", "graph"], type: "string" } },
};

test("settings become typed fields, and entered texts become values", () => {
  const fields = Object.fromEntries(fieldsOf(SCHEMA).map((field) => [field.name, field]));
  expect(Object.values(fields).map((field) => field.kind)).toEqual(["whole", "choice", "number", "boolean", "json"]);
  const typed = (name: string, text: string) => {
    const field = fields[name];
    return field && parsed(field, text);
  };
  expect(typed("top_k", "7")).toBe(7);
  expect(typed("plan", "false")).toBe(false);
  expect(typed("hops", '{"a": 1}')).toEqual({ a: 1 });
  expect(() => typed("top_k", "7.5")).toThrow("whole");
  expect(() => typed("top_k", "0")).toThrow("at least 1");
  expect(() => typed("threshold", "many")).toThrow("number");
});
