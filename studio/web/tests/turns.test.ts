import { expect, test } from "vitest";
import type { LiveStep } from "../src/events";
import { rewrittenIn, stepsOfTurn, turnsOf } from "../src/run/turns";
import type { JsonObject, Run } from "../src/types";

const human = (content: string) => ({ type: "human", content });
const reply = (content: string, about: JsonObject = {}) => ({ type: "ai", content, additional_kwargs: about });

function chat(messages: JsonObject[], options: object = {}): Run {
  return { thread: { id: "talk", method: "chat", question: "Who?", options }, state: { messages } } as unknown as Run;
}

test("each question of a chat has the run that answered it", () => {
  const run = chat([human("Who?"), reply("Oake [1]"), human("Where?"), reply("Sennick", { thread: "talk.2" })], {
    after: "first",
  });
  expect(turnsOf(run, false)).toEqual([
    { question: "Who?", run: "first", text: "Oake [1]" },
    { question: "Where?", run: "talk.2", text: "Sennick" },
  ]);
});

test("a message that was sent is shown before its answer begins, once", () => {
  const asked = (messages: JsonObject[]) =>
    turnsOf(chat(messages, { after: "first", turn: { text: "Where?", earlier: ["Who?", "Oake"] } }), true);
  const wanted = ["Who?", "Where?"];
  expect(asked([]).map(({ question }) => question)).toEqual(wanted);
  expect(asked([human("Who?"), reply("Oake")]).map(({ question }) => question)).toEqual(wanted);
  expect(asked([human("Who?"), reply("Oake"), human("Where?")]).map(({ question }) => question)).toEqual(wanted);
});

test("the approval of a plan is no message of its own, the reply to a question is one", () => {
  const waiting = (about: JsonObject) =>
    turnsOf(chat([human("Who?"), reply("?", { status: "waiting", ...about })], { turn: { text: "approve" } }), true);
  expect(waiting({})).toHaveLength(1);
  expect(waiting({ asked_back: true })).toHaveLength(2);
});

test("a run that is no chat is one turn", () => {
  const run = { thread: { question: "Who?", options: {} }, state: { question: "Who?" } } as unknown as Run;
  expect(turnsOf(run, true)).toEqual([{ question: "Who?", run: "", text: "" }]);
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
