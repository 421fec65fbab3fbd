import { expect, test } from "vitest";
import type { LiveStep } from "../src/events";
import { presentIn, rewrittenIn, stepsOfTurn, turnsOf } from "../src/run/turns";
import type { JsonObject, Run } from "../src/types";

const human = (content: string) => ({ type: "human", content });
const reply = (content: string, about: JsonObject = {}) => ({ type: "ai", content, additional_kwargs: about });

function chat(messages: JsonObject[]): Run {
  return {
    thread: { id: "talk", method: "chat", question: "Who?", options: {} },
    state: { messages },
  } as unknown as Run;
}

test("each question of a chat has the run that answered it", () => {
  const earlier = [human("Who?"), reply("Oake [1]", { thread: "first" })];
  expect(turnsOf(chat([...earlier, human("Where?"), reply("Sennick", { thread: "talk.2" })]))).toEqual([
    { question: "Who?", run: "first", text: "Oake [1]" },
    { question: "Where?", run: "talk.2", text: "Sennick" },
  ]);
});

test("the first message without a reply is answered now, further ones wait", () => {
  const present = (messages: JsonObject[]) => presentIn(turnsOf(chat(messages)));
  expect(present([])).toBe(0);
  expect(present([human("Who?"), reply("Oake")])).toBe(0);
  expect(present([human("Who?"), reply("Oake"), human("Where?")])).toBe(1);
  expect(present([human("Who?"), human("Where?"), human("When?")])).toBe(0);
});

test("a request for a decision is part of its turn", () => {
  expect(turnsOf(chat([human("Who?"), reply("A plan.", { status: "waiting" })]))).toHaveLength(1);
});

test("a run that is no chat is one turn", () => {
  const run = { thread: { question: "Who?", options: {} }, state: { question: "Who?" } } as unknown as Run;
  expect(turnsOf(run)).toEqual([{ question: "Who?", run: "", text: "" }]);
  expect(rewrittenIn(run.state, { question: "Who?", run: "", text: "" })).toBe("");
});

test("of a chat only the steps of the present turn are listed, without those around its method", () => {
  const step = (node: string, thread: string) => ({ node, thread }) as LiveStep;
  const turn = (number: number) => [
    step("classify", "talk"),
    step("refine", "talk"),
    step("plan", "talk"),
    step("act", "talk"),
    step("plan", `talk.${number}`),
    step("answer", "talk"),
  ];
  const shown = stepsOfTurn({ steps: [...turn(1), ...turn(2)] }, { id: "talk", method: "chat" });
  expect(shown).toEqual([step("classify", "talk"), step("plan", "talk.2")]);
});
