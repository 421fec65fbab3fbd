import { expect, test } from "vitest";
import { extended, listedPlan, moved, problemOf, rearranged, sent, storedPlan, without } from "../src/run/plan";
import { extendedBy } from "../src/run/value-editor";

const STEPS = [
  { question: "Who built it?", needs: [], action: "search" },
  { question: "Where was #1 born?", needs: [1] },
  { question: "Which fair is held in #2?", needs: [2] },
];
const questions = (steps: object[]) => steps.map((step) => (step as { question: string }).question);

test("references follow a step that is moved", () => {
  const steps = rearranged([...STEPS, { question: "When?", needs: [] }], moved(4, 3, -1));
  expect(questions(steps)).toEqual(["Who built it?", "Where was #1 born?", "When?", "Which fair is held in #2?"]);
  const first = rearranged(STEPS, moved(3, 1, -1));
  expect(first[0]).toEqual({ question: "Where was #2 born?", needs: [2] });
  expect(first[1]).toMatchObject({ question: "Who built it?", action: "search" });
  expect(problemOf("Where was #2 born?", 1)).toContain("#2 is not an earlier step");
});

test("a removed step leaves a visible gap in those that refer to it", () => {
  const steps = rearranged(STEPS, without(3, 1));
  expect(steps[1]).toEqual({ question: "Which fair is held in #??", needs: [] });
  expect(problemOf("Which fair is held in #??", 2)).toContain("removed");
  expect(questions(rearranged(STEPS, without(3, 0)))).toEqual(["Where was #? born?", "Which fair is held in #1?"]);
});

test("a new step needs the steps that it names", () => {
  const steps = rearranged(STEPS, extended(3));
  expect(steps[3]).toEqual({ question: "", needs: [] });
  const plan = sent(steps.with(3, { question: "How old are #3 and #1?", needs: [] }));
  expect(plan.map(({ needs }) => needs)).toEqual([[], [1], [2], [3, 1]]);
  expect(problemOf("How old are #3 and #1?", 4)).toBe("");
});

test("an entry that is added is a copy of the last one", () => {
  const step = { question: "Who?", needs: ["1"] };
  expect(extendedBy({ 1: step })).toEqual({ 1: step, 2: step });
  expect(extendedBy([])).toEqual([""]);
  expect(extendedBy([1, 2])).toEqual([1, 2, 2]);
  expect(extendedBy({ question: "a", needs: [] })).toBeNull();
  expect(extendedBy({ answer: { finding: "a" } })).toBeNull();
  expect(extendedBy(["ab".repeat(32)])).toBeNull();
});

test("a plan in a state is edited as a list and stored with its keys", () => {
  const step = (question: string, needs: string[]) => ({
    thought: "t",
    planned: question,
    question,
    action: "Retrieve",
    needs,
  });
  const plan = { 1: step("Who built it?", []), 2: step("Which medal was named after #1?", ["1"]) };
  const before = listedPlan(plan) ?? [];
  const edited = [
    before[0] ?? {},
    { ...before[1], question: "Where was #1 born?" },
    { question: "What is in #2?", needs: [] },
  ];
  const stored = storedPlan(edited, before) as Record<string, ReturnType<typeof step>>;
  expect(stored[1]).toEqual(plan[1]);
  expect(stored[2]).toEqual(step("Where was #1 born?", ["1"]));
  expect(stored[3]).toEqual(step("What is in #2?", ["2"]));
  expect(listedPlan({})).toBeNull();
  expect(listedPlan("plan")).toBeNull();
});
