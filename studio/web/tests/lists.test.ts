import { expect, test } from "vitest";
import { searchIn, typeOf } from "../src/documents/search";
import { lookOfRun } from "../src/outcome";
import { queryOf } from "../src/runs/filters";
import { byDay, conversationsIn } from "../src/runs/history";
import type { Thread } from "../src/types";

const run = (id: string, updated_at = "", after?: string) =>
  ({ id, updated_at, options: { ...(after && { after }) } }) as Thread;

test("a run that a chat follows up on is part of that chat", () => {
  expect(conversationsIn([run("chat", "", "first"), run("other"), run("first")]).map(({ id }) => id)).toEqual([
    "chat",
    "other",
  ]);
});

test("conversations are listed by day", () => {
  const days = byDay(
    [
      run("a", "2026-03-02T09:00:00"),
      run("b", "2026-03-02T08:00:00"),
      run("c", "2026-03-01T23:59:00"),
      run("d", "2025-12-24T10:00:00"),
    ],
    new Date("2026-03-02T12:00:00"),
  );
  expect(days.map(([day, runs]) => [day, runs.length])).toEqual([
    ["Today", 2],
    ["Yesterday", 1],
    ["December 24, 2025", 1],
  ]);
});

test.each([
  ["answered", false, "answered"],
  ["answered", true, "weak"],
  ["answered", null, "unchecked"],
  ["unknown", false, "unknown"],
  ["running", null, "running"],
] as const)("a listed run that is %s with weak=%s looks %s", (outcome, weak, look) => {
  expect(lookOfRun({ outcome, weak })).toBe(look);
});

test("weak support is a filter of its own", () => {
  expect(queryOf({ status: "weak", find: "fair" })).toEqual({ weak: "true", find: "fair" });
  expect(queryOf({ status: "unknown" })).toEqual({ status: "unknown" });
});

test.each([
  ["kelp fair", "kelp fair", ""],
  ["kelp tag=contract date>=2025", "kelp", "tag=contract date>=2025"],
  ['!author="Ada Lovelace" plan', "plan", '!author="Ada Lovelace"'],
  ["path:reports/**", "", "path:reports/**"],
  ["What is 2 = 2?", "What is 2 = 2?", ""],
])("%j is searched in titles as %j, in metadata as %j", (typed, find, where) => {
  expect(searchIn(typed)).toEqual({ find, where });
});

test.each([
  ["text/markdown", "Markdown"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "Word"],
  ["application/pdf", "PDF"],
  ["image/png", "Picture"],
  ["application/x-new", "NEW"],
])("a document of %s is called %s", (mediaType, name) => {
  expect(typeOf(mediaType)).toBe(name);
});
