import { expect, test } from "vitest";
import { isTalk } from "../src/ask";
import { titleOf } from "../src/run/timeline";
import { isForResearch, plainly } from "../src/schema";
import { moment } from "./scene";

test.each([
  ["/help", true],
  ["Hello!", true],
  ["Good morning, sleuth", true],
  ["Who?", false],
  ["Birthplace of Bastian Oake", false],
  ["/srv/contracts/a.pdf: when does it end?", false],
])("a chat replies to %j: %s", (message, talk) => {
  expect(isTalk(message)).toBe(talk);
});

test.each([
  ["boolean", "off: drafts are final (ablation)", true],
  ["boolean", "ours: steps that do not need each other run in parallel", true],
  ["number", "consistency that suffices; by default fitted, or 0.7 (paper: 0.7)", true],
  ["json", "settings of the methods", true],
  ["whole", "new questions per step after UNCONFIDENT", true],
  ["whole", "passages for a draft (paper: 10)", false],
  ["choice", "how to search (paper: dense)", false],
  ["boolean", "answers of several sentences, each with its citations", false],
] as const)("a setting of kind %s, “%s”, is for research: %s", (kind, description, research) => {
  expect(isForResearch({ name: "k", kind, description })).toBe(research);
});

test("descriptions for everybody are without the paper", () => {
  expect(plainly("passages for a draft (paper: 10)")).toBe("passages for a draft");
  expect(plainly("or a tree (no merging)")).toBe("or a tree (no merging)");
});

test("checkpoints are named in words, with the steps that they are about", () => {
  const title = (node: string, changed: object) => titleOf(moment("b", "a", { node: [node] }), changed as never);
  expect(title("retrieve_coarse", { coarse: { 1: ["x"] } })).toBe("Search for step 1");
  expect(title("review", { notes: { 2: {}, 3: {} }, wave: [] })).toBe("Check the draft for step 2, 3");
  expect(title("plan", { plan: { 1: {}, 2: {} } })).toBe("Plan");
  expect(title("answer", { notes: { answer: {} } })).toBe("Answer");
  expect(title("some_node", {})).toBe("Some node");
  expect(title("structure", { graph: { "1861": {}, Oake: {} } })).toBe("Read facts");
});
