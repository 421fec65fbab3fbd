/** The branches and runs that can be compared, and the default pair. */

import { branchOf, forkedFrom, treeOf } from "../branches";
import { when } from "../format";
import type { Moment, Thread } from "../types";

export interface Option {
  /** The last checkpoint of a branch of this run, or the thread of another run. */
  value: string;
  label: string;
  thread: string;
  /** A checkpoint of the branch; "" for the newest branch. */
  at: string;
  /** The option that it was forked from, if any. */
  origin: string;
}

/** The branches of a run, the runs related to it by a fork, and runs that were named. */
export function optionsOf(
  thread: Thread,
  history: readonly Moment[],
  threads: readonly Thread[],
  named: readonly Thread[] = [],
): Option[] {
  const own = [...branches(thread, history), ...related(thread, history, threads)];
  const others = named.filter((each) => !own.some((option) => option.value === each.id));
  return [...own, ...others.map((each) => ({ ...runOption(each), at: "", origin: "" }))];
}

function runOption(thread: Thread) {
  const question = thread.question.length > LONGEST ? `${thread.question.slice(0, LONGEST)}…` : thread.question;
  return { value: thread.id, label: `${thread.method}, ${when(thread.created_at)}: ${question}`, thread: thread.id };
}

const LONGEST = 60;

function branches(thread: Thread, history: readonly Moment[]): Option[] {
  const parent = thread.part_of ? "" : thread.parent;
  return treeOf(history).heads.map(({ checkpoint, at }, place) => ({
    value: checkpoint,
    label: `branch ${place + 1}, until ${when(at)}`,
    thread: thread.id,
    at: checkpoint,
    origin: forkedFrom(history, checkpoint) || parent,
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

/** The chosen pair; by default the newest fork and its origin. */
export function pairOf(options: readonly Option[], a: string, b: string): { left: Option; right: Option } | null {
  // The run itself stands for its newest branch.
  const named = (value: string) =>
    options.find((option) => option.value === value) ?? options.findLast((option) => value && option.thread === value);
  const forks = options.filter((option) => option.value !== a && named(option.origin));
  const newest = forks.filter((option) => option.value === option.at).at(-1) ?? forks[0];
  const right = named(b) ?? newest ?? options.find((option) => option.value !== a);
  const left = named(a) ?? named(right?.origin ?? "") ?? options.find((option) => option !== right);
  return left && right ? { left, right } : null;
}

/** The last checkpoint of an option. */
export function endOf(option: Option, history: readonly Moment[]): string {
  return branchOf(history, option.at) || (history[0]?.checkpoint ?? "");
}
