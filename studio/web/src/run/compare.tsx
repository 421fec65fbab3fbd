/** Two branches or runs side by side: the answer and cost of each, their steps in pairs, and differing passages. */

import { pathTo } from "../branches";
import { callsIn, costOf } from "../cost";
import { count, spent } from "../format";
import { EXPLANATIONS, lookOf } from "../outcome";
import { Busy, Chip, Problem } from "../parts";
import { go, hrefOf } from "../route";
import type { Answer, Checkpoint, Moment, Run, Thread } from "../types";
import { useServer } from "../server";
import { aligned, isAlike, rowsOf, shortened, type Row } from "./alignment";
import { AnswerMarkdown } from "./markdown";
import { PassageDifferences } from "./passage-differences";
import { alike, endOf, optionsOf, pairOf, type Option } from "./pairs";

interface Props {
  thread: Thread;
  /** The two branches: each a last checkpoint of this run, or the thread of another run. */
  a: string;
  b: string;
}

export default function Compare({ thread, a, b }: Props) {
  const { value: history, problem } = useServer<Moment[]>(`runs/${thread.id}/history`);
  const { value: threads } = useServer<Thread[]>("runs?limit=200&subruns=false");
  const { value: matching, problem: unmatched } = useServer<Thread[]>(pathOf(thread.question));
  const others = [useOther(a, thread, history), useOther(b, thread, history)];
  if (problem) return <Problem>{problem}</Problem>;
  const isLoading = !(matching ?? unmatched) || others.some((each) => each.loading);
  if (!history || !threads || isLoading) return <Busy>Loading the branches</Busy>;
  const same = (matching ?? []).filter((each) => each.question === thread.question && each.id !== thread.id);
  const options = optionsOf(thread, history, threads, [...others.flatMap((each) => each.thread ?? []), ...same]);
  const pair = pairOf(options, a, b);
  if (!pair || pair.left === pair.right) {
    return (
      <p className="hint">
        There is no other run of this question. Retry it with another method, or fork it from a step under Explore; then
        compare them here.
      </p>
    );
  }
  return <Pair thread={thread} history={history} options={options} a={a} {...pair} />;
}

/** Those runs whose question or answer has these words. */
function pathOf(question: string): string {
  const find = question.slice(0, LONGEST);
  return `runs?${new URLSearchParams({ limit: "50", subruns: "false", find }).toString()}`;
}

const LONGEST = 200;

/** The run that an address names as one side of the comparison; none for a branch of this run. */
function useOther(name: string, thread: Thread, history: Moment[] | null) {
  const isOwn = !name || name === thread.id || history?.some((moment) => moment.checkpoint === name);
  const { value, problem } = useServer<Run>(history && !isOwn ? `runs/${name}` : "");
  return { thread: value?.thread, loading: history !== null && !isOwn && !value && !problem };
}

interface PairProps {
  thread: Thread;
  history: Moment[];
  options: Option[];
  /** The chosen first branch; "" for the origin of the second. */
  a: string;
  left: Option;
  right: Option;
}

function Pair({ thread, history, options, a, left, right }: PairProps) {
  const paths = [usePath(left, thread, history), usePath(right, thread, history)] as const;
  const [first, second] = alike(left, right, paths);
  const show = (one: string, other: string) => go(hrefOf("runs", thread.id, { tab: "compare", a: one, b: other }));
  return (
    <>
      <div className="compare">
        <Side
          label="First branch"
          options={options}
          chosen={left}
          path={paths[0]}
          onChoose={(value) => show(value, right.value)}
        />
        <Side
          label="Second branch"
          options={options}
          chosen={right}
          path={paths[1]}
          onChoose={(value) => show(a, value)}
        />
      </div>
      <Steps a={rowsOf(paths[0], first)} b={rowsOf(paths[1], second)} before={first} />
      <PassageDifferences a={{ thread: left.thread, path: paths[0] }} b={{ thread: right.thread, path: paths[1] }} />
    </>
  );
}

/** All checkpoints of a branch; those of another run are loaded. */
function usePath(option: Option, thread: Thread, own: Moment[]): Moment[] {
  const elsewhere = option.thread === thread.id ? "" : `runs/${option.thread}/history`;
  const { value: other } = useServer<Moment[]>(elsewhere);
  const history = elsewhere ? (other ?? []) : own;
  return pathTo(history, endOf(option, history));
}

interface SideProps {
  label: string;
  options: Option[];
  chosen: Option;
  path: Moment[];
  onChoose: (value: string) => void;
}

/** One side: the choice of a branch, and its answer. */
function Side({ label, options, chosen, path, onChoose }: SideProps) {
  const head = path.at(-1);
  return (
    <section aria-label={label}>
      <label className="inline">
        {label}
        <select value={chosen.value} onChange={(event) => onChoose(event.target.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      </label>
      {head && <Outcome option={chosen} head={head.checkpoint} />}
    </section>
  );
}

/** The steps of both sides in pairs; those that are alike are counted, with those `before` them. */
function Steps({ a, b, before }: { a: Row[]; b: Row[]; before: number }) {
  const pairs = aligned(a, b);
  const different = pairs.filter((pair) => !isAlike(pair));
  const same = before + pairs.length - different.length;
  return (
    <section aria-labelledby="steps" className="wide">
      <h2 id="steps">Steps</h2>
      {same > 0 && <p className="quiet">{count(same, "step")} alike</p>}
      <ol className="paired">
        {different.map(([left, right], at) => (
          <li key={at} className="compare">
            <Cell row={left} />
            <Cell row={right} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Cell({ row }: { row: Row | null }) {
  if (!row) return <div className="quiet">–</div>;
  return (
    <div>
      <strong>{row.title}</strong> <span className="quiet">{row.cost}</span>
      {row.lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

/** The answer of a branch and its total cost. */
function Outcome({ option: { thread, method }, head }: { option: Option; head: string }) {
  const { value: last, problem } = useServer<Checkpoint>(`runs/${thread}/checkpoints/${head}`);
  if (!last) return <Problem>{problem}</Problem>;
  const verdict = last.values.verdict as unknown as Pick<Answer, "status" | "text" | "support"> | null;
  const text = verdict ? verdict.text || (EXPLANATIONS[verdict.status] ?? "") : "No answer yet.";
  return (
    <div className="answer">
      <AnswerMarkdown answer={{ text: shortened(text), citations: [] }} onOpen={ignore} />
      <p className="status">
        {verdict && <Chip status={lookOf({ ...verdict, method })} />} <span>{spent(costOf(callsIn(last.values)))}</span>
      </p>
    </div>
  );
}

const ignore = () => undefined;
