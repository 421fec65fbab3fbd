import { expect, test } from "vitest";
import { headOf, pathTo, shared, treeOf, visits } from "../src/branches";
import { FORKED, moment } from "./scene";

const ids = (moments: readonly { checkpoint: string }[]) => moments.map((each) => each.checkpoint);

test("a fork has its own lane, starting at its parent's row", () => {
  const { rows } = treeOf(FORKED);
  expect(rows.map((row) => [row.moment.checkpoint, row.lane, row.parentRow])).toEqual([
    ["a", 0, null],
    ["b", 0, 0],
    ["c", 0, 1],
    ["d", 1, 1],
    ["e", 1, 3],
  ]);
});

test("heads are the last checkpoints of branches, the oldest branch first", () => {
  expect(ids(treeOf(FORKED).heads)).toEqual(["c", "e"]);
});

test("the path to a checkpoint excludes other branches", () => {
  expect(ids(pathTo(FORKED, "e"))).toEqual(["a", "b", "d", "e"]);
  expect(pathTo(FORKED, "nowhere")).toEqual([]);
});

test("a checkpoint before the fork is shown in the newest branch", () => {
  expect(headOf(FORKED, "b")).toBe("e");
  expect(headOf(FORKED, "c")).toBe("c");
});

test("two branches share the checkpoints before the fork", () => {
  expect(shared(pathTo(FORKED, "c"), pathTo(FORKED, "e"))).toBe(2);
});

test("a state changed by hand is not a step, a copied checkpoint is", () => {
  expect(visits(pathTo(FORKED, "e")).map((step) => [step.node, step.number])).toEqual([
    ["plan", 1],
    ["draft", 2],
  ]);
  expect(visits([moment("y", "x", { node: ["plan"], source: "fork" })])).toHaveLength(1);
});

test("a checkpoint whose parent was pruned is a root", () => {
  const { rows, heads } = treeOf(FORKED.filter((each) => each.checkpoint !== "a"));
  expect(rows[0]).toMatchObject({ lane: 0, parentRow: null });
  expect(ids(heads)).toEqual(["c", "e"]);
});
