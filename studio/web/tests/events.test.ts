import { expect, test } from "vitest";
import { costOf } from "../src/cost";
import { NOTHING, reduce, type Live } from "../src/events";
import { call } from "./scene";

const event = (id: number | "", name: string, data: object) => ({ id: String(id), name, data: JSON.stringify(data) });
const step = (id: number, node: string, state: string, update: object = {}) =>
  event(id, "step", { thread: "t", node, state, method: "par-rag", update });
const after = (...events: ReturnType<typeof event>[]): Live => events.reduce(reduce, NOTHING);

test("a finished step replaces the started one", () => {
  const live = after(step(1, "plan", "started"), step(2, "plan", "finished", { plan: { 1: "x" } }));
  expect(live.steps).toMatchObject([{ node: "plan", state: "done", update: { plan: { 1: "x" } } }]);
});

test("a repeated event counts once", () => {
  const twice = step(1, "plan", "started");
  expect(after(twice, twice).steps).toHaveLength(1);
});

test("parallel steps may finish in any order", () => {
  const live = after(step(1, "a", "started"), step(2, "b", "started"), step(3, "a", "finished"));
  expect(live.steps.map((each) => each.state)).toEqual(["done", "running"]);
});

const delta = (node: string, call: string, text: string, thread = "t") =>
  event("", "delta", { thread, node, role: "drafter", call, text });

test("deltas of a call are joined, a reset or its finished step removes them", () => {
  const first = delta("draft", "c", "the ");
  const other = delta("draft", "d", "x", "hop");
  expect(after(first, delta("draft", "c", "fair")).drafts).toMatchObject({ c: { node: "draft", text: "the fair" } });
  expect(after(first, event("", "reset", { call: "c" })).drafts).toEqual({});
  const ended = after(step(1, "draft", "started"), first, other, step(2, "draft", "finished"));
  expect(ended.drafts).toMatchObject({ d: { text: "x" } });
  expect(Object.keys(ended.drafts)).toHaveLength(1);
});

test("the cost so far counts each call once", () => {
  const update = { calls: { one: call("plan"), two: call("plan") } };
  const live = after(step(1, "plan", "finished", update), step(2, "plan", "finished", update));
  expect(costOf(live.calls)).toMatchObject({ calls: 2, prompt_tokens: 200, cached_tokens: 40, model_seconds: 1 });
});

test("a stopped step is interrupted, runs again when resumed, and finishes in its place", () => {
  const stopped = after(step(1, "plan", "started"), event(2, "stopped", {}));
  expect(stopped).toMatchObject({ steps: [{ state: "interrupted" }], end: { kind: "stopped" } });
  const resumed = reduce(stopped, event("", "resumed", {}));
  expect(resumed).toMatchObject({ steps: [{ state: "running" }], end: null });
  expect(reduce(stopped, step(3, "plan", "finished")).steps).toMatchObject([{ state: "done", resumed: true }]);
});

test("a run continues after its answer when a branch is run", () => {
  const live = after(event(1, "answer", { text: "x" }), step(2, "draft", "started"));
  expect(live).toMatchObject({ end: null, steps: [{ resumed: true }] });
});

test("events with unknown names are ignored", () => {
  expect(after(event(1, "weather", {}))).toEqual({ ...NOTHING, lastId: 1 });
});
