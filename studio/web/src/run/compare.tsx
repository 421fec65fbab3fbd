/** Two branches or runs side by side: the answer and cost of each, and the steps in which they differ. */

import { pathTo } from "../branches";
import { fresh, linesOf } from "../changes";
import { callsIn, costOf } from "../cost";
import { count, spent } from "../format";
import { EXPLANATIONS, lookOf } from "../outcome";
import { Busy, Chip, Problem } from "../parts";
import { go, hrefOf } from "../route";
import type { Answer, Checkpoint, Moment, Run, Thread } from "../types";
import { useServer } from "../server";
import { PassageDifferences } from "./passage-differences";
import { alike, endOf, optionsOf, pairOf, type Option } from "./pairs";
import { titleOf } from "./timeline";

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
          alike={first}
          others={textsOf(paths[1], second)}
          onChoose={(value) => show(value, right.value)}
        />
        <Side
          label="Second branch"
          options={options}
          chosen={right}
          path={paths[1]}
          alike={second}
          others={textsOf(paths[0], first)}
          onChoose={(value) => show(a, value)}
        />
      </div>
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
  /** The number of its first checkpoints that the other branch has, too. */
  alike: number;
  /** The texts of the other branch's steps. */
  others: ReadonlySet<string>;
  onChoose: (value: string) => void;
}

/** One side: the answer, and the steps that the other side does not have. */
function Side({ label, options, chosen, path, alike: first, others, onChoose }: SideProps) {
  const head = path.at(-1);
  const different = path.slice(first).filter((moment) => !others.has(textOf(moment, path)));
  const same = path.length - different.length;
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
      {head && <Outcome thread={chosen.thread} head={head.checkpoint} />}
      <ol className="steps">
        {same > 0 && <li className="quiet">{count(same, "checkpoint")} alike</li>}
        {different.map((moment) => (
          <li key={moment.checkpoint} className="step differs">
            <strong>{titleOf(moment, fresh(moment, path))}</strong> <StepCost moment={moment} path={path} />
            {linesOf(fresh(moment, path)).map((line) => (
              <p key={line}>{line}</p>
            ))}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The text of a step, to find steps that the other branch does not have. */
function textOf(moment: Moment, path: Moment[]): string {
  const changed = fresh(moment, path);
  return [titleOf(moment, changed), ...linesOf(changed)].join("\n");
}

function textsOf(path: Moment[], first: number): ReadonlySet<string> {
  return new Set(path.slice(first).map((moment) => textOf(moment, path)));
}

function StepCost({ moment, path }: { moment: Moment; path: Moment[] }) {
  const cost = costOf(callsIn(fresh(moment, path)));
  return cost.calls > 0 && <span className="quiet">{spent(cost)}</span>;
}

/** The answer of a branch and its total cost. */
function Outcome({ thread, head }: { thread: string; head: string }) {
  const { value: last, problem } = useServer<Checkpoint>(`runs/${thread}/checkpoints/${head}`);
  if (!last) return <Problem>{problem}</Problem>;
  const verdict = last.values.verdict as unknown as Pick<Answer, "status" | "text" | "support"> | null;
  return (
    <div className={`answer is-${verdict && lookOf(verdict)}`}>
      <p className="row">
        {verdict && <Chip status={lookOf(verdict)} />}
        <span className="quiet">{spent(costOf(callsIn(last.values)))}</span>
      </p>
      <p className="answer-text">{verdict ? verdict.text || EXPLANATIONS[verdict.status] : "No answer yet."}</p>
    </div>
  );
}
