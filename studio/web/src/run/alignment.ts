/** The steps of two branches beside each other. */

import { isChange } from "../branches";
import { fresh } from "../changes";
import { callsIn, costOf } from "../cost";
import { spent } from "../format";
import type { Moment } from "../types";
import { findingsOf } from "./sentences";
import { titleOf } from "./timeline";

/** A step in words. */
export interface Row {
  title: string;
  lines: string[];
  /** The cost of its model calls; "" without any. */
  cost: string;
}

/** The steps of a branch in words, without the first ones and the question. */
export function rowsOf(path: readonly Moment[], first: number): Row[] {
  return path
    .slice(first)
    .filter((moment) => moment.node.length > 0 || isChange(moment))
    .map((moment) => {
      const changed = fresh(moment, path);
      const cost = costOf(callsIn(changed));
      return {
        title: titleOf(moment, changed),
        lines: [...new Set(["", ...moment.node].flatMap((node) => findingsOf({ node, update: changed })))],
        cost: cost.calls ? spent(cost) : "",
      };
    });
}

type Pair = [Row | null, Row | null];

/** The steps of two branches in pairs of the same kind, in the order of both. */
export function aligned(a: readonly Row[], b: readonly Row[]): Pair[] {
  const common = commonSteps(a, b);
  const pairs: Pair[] = [];
  let [i, j] = [0, 0];
  for (const [inA, inB] of [...common, [a.length, b.length] as const]) {
    while (i < inA) pairs.push([a[i++] ?? null, null]);
    while (j < inB) pairs.push([null, b[j++] ?? null]);
    if (i < a.length && j < b.length) pairs.push([a[i++] ?? null, b[j++] ?? null]);
  }
  return pairs;
}

interface Common {
  places: (readonly [number, number])[];
  score: number;
}

const NOTHING: Common = { places: [], score: 0 };
/** What a pair of the same kind of step counts, for the same step of the plan, and for another one. */
const [SAME, SIMILAR] = [2, 1];

/** The places in both lists of the best common sequence of steps. */
function commonSteps(a: readonly Row[], b: readonly Row[]): Common["places"] {
  let below = new Array<Common>(b.length + 1).fill(NOTHING);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const row = new Array<Common>(b.length + 1).fill(NOTHING);
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [rest, down, right] = [below[j + 1] ?? NOTHING, below[j] ?? NOTHING, row[j + 1] ?? NOTHING];
      const worth = likeness(a[i], b[j]);
      const paired = worth ? { places: [[i, j] as const, ...rest.places], score: rest.score + worth } : NOTHING;
      row[j] = [paired, down, right].reduce((best, each) => (each.score > best.score ? each : best));
    }
    below = row;
  }
  return below[0]?.places ?? [];
}

function likeness(a?: Row, b?: Row): number {
  const kind = (row?: Row) => row?.title.replace(/ for step [\d, ]+$/, "");
  return a?.title === b?.title ? SAME : kind(a) === kind(b) ? SIMILAR : 0;
}

/** True if both branches did and found the same in a step. */
export function isAlike([a, b]: Pair): boolean {
  return a !== null && b !== null && a.lines.join("\n") === b.lines.join("\n");
}

const MOST_ROWS = 10;

/** A text in which each table has at most ten rows. */
export function shortened(text: string): string {
  return text.replace(/(?:^\|.*(?:\n|$))+/gm, (table) => {
    const rows = table.trimEnd().split("\n");
    const [head, body] = [rows.slice(0, 2), rows.slice(2)];
    if (body.length <= MOST_ROWS) return table;
    return `${[...head, ...body.slice(0, MOST_ROWS)].join("\n")}\n\n… and ${body.length - MOST_ROWS} more rows.\n`;
  });
}
