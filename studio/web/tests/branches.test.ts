import { expect, test } from "vitest";
import { headOf, pathTo, shared, treeOf, visits } from "../src/branches";
import { FORKED, moment } from "./scene";

const ids = (moments: readonly { checkpoint: string }[]) => moments.map((each) => each.checkpoint);

test("a fork opens a lane of its own, from the row that it comes from", () => {
  const { rows } = treeOf(FORKED);
  expect(rows.map((row) => [row.moment.checkpoint, row.lane, row.parentRow])).toEqual([
    ["a", 0, null],
    ["b", 0, 0],
    ["c", 0, 1],
    ["d", 1, 1],
    ["e", 1, 3],
  ]);
});

test("each branch ends in a head, the oldest branch first", () => {
  expect(ids(treeOf(FORKED).heads)).toEqual(["c", "e"]);
});

test("the way to a checkpoint leaves other branches out", () => {
  expect(ids(pathTo(FORKED, "e"))).toEqual(["a", "b", "d", "e"]);
  expect(pathTo(FORKED, "nowhere")).toEqual([]);
});

test("a checkpoint before the fork is looked at in the newest branch", () => {
  expect(headOf(FORKED, "b")).toBe("e");
  expect(headOf(FORKED, "c")).toBe("c");
});

test("two branches share what was before the fork", () => {
  expect(shared(pathTo(FORKED, "c"), pathTo(FORKED, "e"))).toBe(2);
});

test("a state changed by hand is no step, a copy to go on from is one", () => {
  expect(visits(pathTo(FORKED, "e")).map((step) => [step.node, step.number])).toEqual([
    ["plan", 1],
    ["draft", 2],
  ]);
  expect(visits([moment("y", "x", { node: ["plan"], source: "fork" })])).toHaveLength(1);
});

test("what pruning has left without its parent begins a tree", () => {
  const { rows, heads } = treeOf(FORKED.filter((each) => each.checkpoint !== "a"));
  expect(rows[0]).toMatchObject({ lane: 0, parentRow: null });
  expect(ids(heads)).toEqual(["c", "e"]);
});
