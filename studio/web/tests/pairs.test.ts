import { expect, test } from "vitest";
import { branchOf, forkedFrom, pathTo } from "../src/branches";
import { alike, endOf, optionsOf, pairOf } from "../src/run/pairs";
import type { Thread } from "../src/types";
import { FORKED, moment } from "./scene";

/** FORKED, with a third branch, f, forked from c of the first. */
const THREE = [moment("f", "c", { at: "7" }), moment("g", "c", { at: "6" }), ...FORKED];

function thread(id: string, more: Partial<Thread> = {}): Thread {
  return {
    id,
    method: "par-rag",
    question: "Who?",
    title: "",
    options: { values: {}, budget: { max_calls: null, max_tokens: null, max_seconds: null } },
    state: "done",
    outcome: "answered",
    answer: null,
    weak: null,
    calls: null,
    tokens: null,
    seconds: null,
    problem: "",
    parent: "",
    parent_checkpoint: "",
    part_of: "",
    created_at: "",
    updated_at: "",
    ...more,
  };
}

function shown(own: Thread, history: typeof FORKED, threads: Thread[], a = "", b = "") {
  const pair = pairOf(optionsOf(own, history, threads), a, b);
  return pair && [pair.left.value, pair.right.value];
}

test("branchOf returns the branch of a checkpoint, not the newest one below it", () => {
  expect(branchOf(FORKED, "b")).toBe("c");
  expect(branchOf(FORKED, "d")).toBe("e");
  expect(branchOf(FORKED, "pruned")).toBe("");
});

test("forkedFrom returns the origin of a branch", () => {
  expect(forkedFrom(FORKED, "e")).toBe("c");
  expect(forkedFrom(FORKED, "c")).toBe("");
  expect(forkedFrom(THREE, "f")).toBe("g");
});

test("a branch is compared with the branch that it was forked from", () => {
  expect(shown(thread("1"), FORKED, [])).toEqual(["c", "e"]);
  expect(shown(thread("1"), THREE, [])).toEqual(["g", "f"]);
  expect(shown(thread("1"), THREE, [], "", "e")).toEqual(["g", "e"]);
});

test("a fork into another method is compared with the branch that it was forked from", () => {
  const fork = thread("2", { method: "plain-rag", parent: "1", parent_checkpoint: "b" });
  expect(shown(thread("1"), FORKED, [fork], "", "2")).toEqual(["c", "2"]);
  const later = { ...fork, parent_checkpoint: "d" };
  expect(shown(thread("1"), FORKED, [later], "", "2")).toEqual(["e", "2"]);
});

test("a forked run is compared with the branch of the other run that it was forked from", () => {
  const own = thread("2", { parent: "1", parent_checkpoint: "b" });
  const history = [moment("y", "x", { at: "2" }), moment("x", "", { at: "1" })];
  const pair = pairOf(optionsOf(own, history, [thread("1"), own]), "", "");
  expect([pair?.left.value, pair?.right.value]).toEqual(["1", "y"]);
  expect(pair && endOf(pair.left, FORKED)).toBe("c");
  expect(pair && endOf(pair.right, history)).toBe("y");
});

test("a fork whose origin was pruned is compared with the newest branch", () => {
  const own = thread("2", { parent: "1", parent_checkpoint: "pruned" });
  const [, parent] = optionsOf(own, [moment("x", "", { at: "1" })], [thread("1")]);
  expect(parent && endOf(parent, FORKED)).toBe("e");
});

test("a chosen pair is compared, a single branch with nothing", () => {
  expect(shown(thread("1"), THREE, [], "e", "g")).toEqual(["e", "g"]);
  expect(shown(thread("1"), [moment("a", "", { at: "1" })], [])).toBeNull();
});

test("a run is compared with another run of its question, and a fork only from its start on", () => {
  const history = [moment("a", "", { at: "1" })];
  const pair = pairOf(optionsOf(thread("1"), history, [], [thread("2"), thread("2")]), "", "");
  expect([pair?.left.value, pair?.right.value]).toEqual(["a", "2"]);
  const own = thread("2", { parent: "1", parent_checkpoint: "b" });
  const copied = [moment("y", "x", { at: "2" }), moment("x", "", { at: "1" })];
  const forked = pairOf(optionsOf(own, copied, [thread("1")]), "", "");
  const paths = [pathTo(FORKED, "c"), pathTo(copied, "y")] as const;
  expect(forked && alike(forked.left, forked.right, paths)).toEqual([2, 1]);
});

test("sub-runs of a run are not compared with it", () => {
  const hop = thread("1.1", { parent: "1", part_of: "1" });
  expect(shown(thread("1"), [moment("a", "", { at: "1" })], [hop])).toBeNull();
});
