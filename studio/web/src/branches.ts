/** The checkpoints of a run as a tree: branches, the path to each checkpoint, and a lane per branch for drawing. */

import type { Moment } from "./types";

export interface Placed {
  moment: Moment;
  /** 0 for the first branch; a fork opens the next lane. */
  lane: number;
  parentRow: number | null;
}

export interface Tree {
  /** Oldest first, each after its parent. */
  rows: Placed[];
  /** The last checkpoint of each branch, oldest branch first. */
  heads: Moment[];
}

/** The tree of a history, which is newest first; checkpoints whose parent was pruned are roots. */
export function treeOf(history: readonly Moment[]): Tree {
  const moments = [...history].sort((a, b) => (a.at === b.at ? order(a, b) : a.at < b.at ? -1 : 1));
  const rowOf = new Map(moments.map((moment, row) => [moment.checkpoint, row]));
  const continued = new Set<string>();
  const rows: Placed[] = [];
  let lanes = 0;
  for (const moment of moments) {
    const parentRow = rowOf.get(moment.parent) ?? null;
    const parent = parentRow === null ? undefined : rows[parentRow];
    const follows = parent !== undefined && !continued.has(moment.parent);
    continued.add(moment.parent);
    rows.push({ moment, lane: follows ? parent.lane : lanes++, parentRow: parent ? parentRow : null });
  }
  const heads = moments.filter((moment) => !continued.has(moment.checkpoint));
  return { rows, heads: heads.sort((a, b) => laneOf(rows, a) - laneOf(rows, b)) };
}

function order(a: Moment, b: Moment): number {
  return a.step - b.step || (a.checkpoint < b.checkpoint ? -1 : 1);
}

function laneOf(rows: readonly Placed[], moment: Moment): number {
  return rows.find((row) => row.moment === moment)?.lane ?? 0;
}

/** The path from the first checkpoint to this one. */
export function pathTo(history: readonly Moment[], checkpoint: string): Moment[] {
  const byId = new Map(history.map((moment) => [moment.checkpoint, moment]));
  const path: Moment[] = [];
  for (let at = byId.get(checkpoint); at; at = byId.get(at.parent)) path.unshift(at);
  return path;
}

/** The newest descendant of a checkpoint, or itself: the head of the branch to show. */
export function headOf(history: readonly Moment[], checkpoint: string): string {
  const below = treeOf(history).heads.filter((head) =>
    pathTo(history, head.checkpoint).some((each) => each.checkpoint === checkpoint),
  );
  return (
    below.reduce<Moment | null>((best, each) => (best && best.at > each.at ? best : each), null)?.checkpoint ??
    checkpoint
  );
}

/** The last checkpoint of the branch that a checkpoint belongs to; later forks do not change it. "" if it is missing. */
export function branchOf(history: readonly Moment[], checkpoint: string): string {
  const { rows } = treeOf(history);
  const row = rows.find((each) => each.moment.checkpoint === checkpoint);
  return row ? lastOf(rows, row.lane) : "";
}

/** The last checkpoint of the branch that a branch was forked from; "" for one that begins with the run. */
export function forkedFrom(history: readonly Moment[], head: string): string {
  const { rows } = treeOf(history);
  const lane = rows.find((each) => each.moment.checkpoint === head)?.lane;
  const parentRow = rows.find((each) => each.lane === lane)?.parentRow ?? null;
  const parent = parentRow === null ? undefined : rows[parentRow];
  return parent ? lastOf(rows, parent.lane) : "";
}

function lastOf(rows: readonly Placed[], lane: number): string {
  return rows.filter((row) => row.lane === lane).at(-1)?.moment.checkpoint ?? "";
}

/** The number of common checkpoints of two paths. */
export function shared(a: readonly Moment[], b: readonly Moment[]): number {
  let length = 0;
  while (length < a.length && a[length]?.checkpoint === b[length]?.checkpoint) length += 1;
  return length;
}

/** The visits of nodes on a path, without the input and changes by hand; a copy counts as its original. */
export function visits(path: readonly Moment[]): { node: string; moment: Moment; number: number }[] {
  const steps = path.filter((moment) => moment.node.length > 0 && !isChange(moment));
  return steps.flatMap((moment, at) => moment.node.map((node) => ({ node, moment, number: at + 1 })));
}

/** True if the state of a checkpoint was changed by hand. */
export function isChange(moment: Moment): boolean {
  return moment.source === "update";
}
