import { useEffect, useRef } from "react";
import { fresh } from "../changes";
import { isChange, pathTo, treeOf, type Placed, type Tree } from "../branches";
import { callsIn, costOf } from "../cost";
import { clock, count } from "../format";
import { isObject } from "../json";
import type { JsonObject, Moment } from "../types";
import { titleOfNode } from "./sentences";

const ROW = 44;
const LANE = 16;

interface Props {
  history: Moment[];
  chosen: string;
  path: Moment[];
  onChoose: (checkpoint: string) => void;
}

/** All checkpoints, oldest first, with lines for branches. Arrow keys move between them. */
export function Timeline({ history, chosen, path, onChoose }: Props) {
  const tree = treeOf(history);
  const onPath = new Set(path.map((moment) => moment.checkpoint));
  const lanes = 1 + Math.max(0, ...tree.rows.map((row) => row.lane));
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const box = list.current?.closest("section");
    const row = list.current?.querySelector<HTMLElement>("[aria-current]")?.parentElement;
    // Scroll the list only, not the page.
    if (box && row && !inside(row, box)) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  }, [chosen]);
  return (
    <div className="timeline">
      <Lanes tree={tree} width={lanes * LANE + 8} onPath={onPath} />
      <ol ref={list} onKeyDown={walk} style={{ paddingLeft: lanes * LANE + 8 }}>
        {tree.rows.map(({ moment, lane }) => (
          <li
            key={moment.checkpoint}
            style={{ height: ROW }}
            className={onPath.has(moment.checkpoint) ? "on-path" : ""}
          >
            <button
              aria-current={moment.checkpoint === chosen ? "step" : undefined}
              onClick={() => onChoose(moment.checkpoint)}
            >
              <strong>{titleOf(moment, freshIn(moment, history))}</strong>
              <span className="row spread">
                <small>
                  <Names nodes={moment.node} /> {about(moment, history, lane)}
                </small>
                <small>{clock(moment.at)}</small>
              </span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function inside(row: HTMLElement, box: HTMLElement): boolean {
  const [inner, outer] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
  return inner.top >= outer.top && inner.bottom <= outer.bottom;
}

/** What a checkpoint is the result of, in words, with the steps of the plan that it is about. */
export function titleOf(moment: Moment, changed: JsonObject): string {
  if (isChange(moment)) return "Changed by hand";
  if (!moment.node.length) return moment.next.includes("__start__") ? "Start" : "Question";
  const steps = stepsIn(changed);
  const about = moment.node.includes("plan") || !steps.length ? "" : ` for step ${steps.join(", ")}`;
  return moment.node.map(titleOfNode).join(" + ") + about;
}

/** The numbers of the plan's steps that an update has entries for; a number among names, such as a year, is none. */
function stepsIn(changed: JsonObject): string[] {
  const entries = Object.entries(changed).filter(([name]) => name !== "calls" && name !== "plan");
  const keys = entries.map(([, value]) => (isObject(value) ? Object.keys(value) : []));
  return [...new Set(keys.filter((each) => each.every((key) => /^\d+$/.test(key))).flat())];
}

/** The names of nodes in the code. */
export function Names({ nodes }: { nodes: string[] }) {
  return nodes.length > 0 && <code className="quiet">{nodes.join(" + ")}</code>;
}

function freshIn(moment: Moment, history: Moment[]): JsonObject {
  return fresh(moment, pathTo(history, moment.checkpoint));
}

function about(moment: Moment, history: Moment[], lane: number): string {
  const cost = costOf(callsIn(freshIn(moment, history)));
  const resumed = moment.source === "fork" && "resumed from here";
  const spent = cost.calls > 0 && [
    count(cost.calls, "call"),
    count(cost.prompt_tokens + cost.completion_tokens, "token"),
  ];
  return [lane > 0 && `branch ${lane + 1}`, resumed, ...(spent || [])].filter(Boolean).join(" · ");
}

function walk(event: React.KeyboardEvent<HTMLOListElement>) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  buttons[buttons.indexOf(document.activeElement as HTMLButtonElement) + step]?.focus();
}

function Lanes({ tree, width, onPath }: { tree: Tree; width: number; onPath: Set<string> }) {
  return (
    <svg aria-hidden="true" width={width} height={tree.rows.length * ROW}>
      {tree.rows.map((row, at) => {
        const parent = row.parentRow === null ? undefined : tree.rows[row.parentRow];
        const style = onPath.has(row.moment.checkpoint) ? "on-path" : "";
        return (
          <g key={row.moment.checkpoint} className={style}>
            {parent && <path d={link(parent, row.parentRow ?? 0, row, at)} />}
            <circle cx={x(row)} cy={y(at)} r={5} />
          </g>
        );
      })}
    </svg>
  );
}

function x(row: Placed): number {
  return 10 + row.lane * LANE;
}

function y(at: number): number {
  return at * ROW + ROW / 2;
}

function link(from: Placed, fromRow: number, to: Placed, toRow: number): string {
  const bend = y(fromRow) + ROW / 2;
  return from.lane === to.lane
    ? `M ${x(from)} ${y(fromRow)} V ${y(toRow)}`
    : `M ${x(from)} ${y(fromRow)} C ${x(from)} ${bend} ${x(to)} ${y(fromRow)} ${x(to)} ${bend} V ${y(toRow)}`;
}
