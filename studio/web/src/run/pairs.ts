/** The branches and runs that can be compared, and the default pair. */

import { branchOf, forkedFrom, shared, treeOf } from "../branches";
import { when } from "../format";
import type { Moment, Thread } from "../types";

export interface Option {
  /** The last checkpoint of a branch of this run, or the thread of another run. */
  value: string;
  label: string;
  method: string;
  thread: string;
  /** A checkpoint of the branch; "" for the newest branch. */
  at: string;
  /** The option that it was forked from, if any. */
  origin: string;
  /** Of a fork that is a run of its own: the checkpoint of the other run from which it starts. */
  start: string;
}

/** The branches of a run, the runs related to it by a fork, and others that may be compared with it. */
export function optionsOf(
  thread: Thread,
  history: readonly Moment[],
  threads: readonly Thread[],
  named: readonly Thread[] = [],
): Option[] {
  const own = [...branches(thread, history), ...related(thread, history, threads)];
  const isNew = ({ id }: Thread, at: number) =>
    !own.some(({ value }) => value === id) && named.findIndex((each) => each.id === id) === at;
  return [...own, ...named.filter(isNew).map((each) => ({ ...runOption(each), at: "", origin: "" }))];
}

function runOption(thread: Thread) {
  const question = thread.question.length > LONGEST ? `${thread.question.slice(0, LONGEST)}…` : thread.question;
  const label = `${thread.method}, ${when(thread.created_at)}: ${question}`;
  return {
    value: thread.id,
    label,
    method: thread.method,
    thread: thread.id,
    start: thread.part_of ? "" : thread.parent_checkpoint,
  };
}

const LONGEST = 60;

function branches(thread: Thread, history: readonly Moment[]): Option[] {
  const parent = thread.part_of ? "" : thread.parent;
  const { heads } = treeOf(history);
  return heads.map(({ checkpoint, at }, place) => ({
    value: checkpoint,
    label: heads.length > 1 ? `branch ${place + 1}, until ${when(at)}` : `this run, ${thread.method}`,
    method: thread.method,
    thread: thread.id,
    at: checkpoint,
    origin: forkedFrom(history, checkpoint) || parent,
    start: thread.part_of ? "" : thread.parent_checkpoint,
  }));
}

/** Related runs: forks into other methods, and the run that this one was forked from. */
function related(thread: Thread, history: readonly Moment[], threads: readonly Thread[]): Option[] {
  const forks = threads.filter((each) => each.parent === thread.id && !each.part_of);
  const parents = threads.filter((each) => each.id === thread.parent && !thread.part_of);
  return [
    ...forks.map((each) => ({ ...runOption(each), at: "", origin: branchOf(history, each.parent_checkpoint) })),
    ...parents.map((each) => ({ ...runOption(each), at: thread.parent_checkpoint, origin: "" })),
  ];
}

/** The chosen pair; by default the newest fork and its origin, else this run and the next one. */
export function pairOf(options: readonly Option[], a: string, b: string): { left: Option; right: Option } | null {
  // The run itself stands for its newest branch.
  const named = (value: string) =>
    options.find((option) => option.value === value) ?? options.findLast((option) => value && option.thread === value);
  const forks = options.filter((option) => option.value !== a && named(option.origin));
  const newest = forks.filter((option) => option.value === option.at).at(-1) ?? forks[0];
  const right = named(b) ?? newest ?? options.find((option, at) => (a ? option.value !== a : at > 0));
  const left = named(a) ?? named(right?.origin ?? "") ?? options.find((option) => option !== right);
  return left && right ? { left, right } : null;
}

/** The last checkpoint of an option. */
export function endOf(option: Option, history: readonly Moment[]): string {
  return branchOf(history, option.at) || (history[0]?.checkpoint ?? "");
}

/** The numbers of the first checkpoints of two branches that are alike: in common, or copied by a fork. */
export function alike(a: Option, b: Option, paths: readonly [readonly Moment[], readonly Moment[]]): [number, number] {
  const starts = ({ start }: Option, path: readonly Moment[]) =>
    start ? 1 + path.findIndex((moment) => moment.checkpoint === start) : 0;
  const [inA, inB] = [starts(b, paths[0]), starts(a, paths[1])];
  if (inA) return [inA, 1];
  if (inB) return [1, inB];
  const common = shared(...paths);
  return [common, common];
}
