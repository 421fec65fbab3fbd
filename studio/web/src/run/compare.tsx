/** Two branches side by side: their common checkpoints, then the steps, answer and cost of each. */

import { pathTo, shared } from "../branches";
import { fresh, linesOf } from "../changes";
import { callsIn, costOf } from "../cost";
import { spent, words } from "../format";
import { Busy, Chip, Problem } from "../parts";
import { go, hrefOf } from "../route";
import type { AnswerStatus, Checkpoint, Moment, Run, Thread } from "../types";
import { useServer } from "../server";
import { PassageDifferences } from "./passage-differences";
import { endOf, optionsOf, pairOf, type Option } from "./pairs";
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
  const others = [useOther(a, thread, history), useOther(b, thread, history)];
  if (problem) return <Problem>{problem}</Problem>;
  if (!history || !threads || others.some((each) => each.loading)) return <Busy>Loading the branches</Busy>;
  const named = others.flatMap((each) => each.thread ?? []);
  const options = optionsOf(thread, history, threads, named);
  const pair = pairOf(options, a, b);
  if (!pair || pair.left === pair.right) {
    return (
      <p className="hint">
        This run has only one branch. Fork it from a step under Explore, then compare the branches here.
      </p>
    );
  }
  return <Pair thread={thread} history={history} options={options} a={a} {...pair} />;
}

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
  const common = shared(...paths);
  const show = (first: string, second: string) => {
    go(hrefOf("runs", thread.id, { tab: "compare", a: first, b: second }));
  };
  return (
    <>
      <div className="compare">
        <Side
          label="First branch"
          options={options}
          chosen={left}
          path={paths[0]}
          other={paths[1]}
          common={common}
          onChoose={(value) => {
            show(value, right.value);
          }}
        />
        <Side
          label="Second branch"
          options={options}
          chosen={right}
          path={paths[1]}
          other={paths[0]}
          common={common}
          onChoose={(value) => {
            show(a, value);
          }}
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
  other: Moment[];
  common: number;
  onChoose: (value: string) => void;
}

function Side({ label, options, chosen, path, other, common, onChoose }: SideProps) {
  const head = path.at(-1);
  const theirs = new Set(other.slice(common).map((moment) => textOf(moment, other)));
  return (
    <section aria-label={label}>
      <label className="inline">
        {label}
        <select
          value={chosen.value}
          onChange={(event) => {
            onChoose(event.target.value);
          }}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      </label>
      {head && <Outcome thread={chosen.thread} head={head.checkpoint} />}
      <ol className="steps">
        {common > 0 && <li className="quiet">{common} checkpoints in common</li>}
        {path.slice(common).map((moment) => (
          <li key={moment.checkpoint} className={theirs.has(textOf(moment, path)) ? "step" : "step differs"}>
            <strong>{titleOf(moment)}</strong> <StepCost moment={moment} path={path} />
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
  return [titleOf(moment), ...linesOf(fresh(moment, path))].join("\n");
}

function StepCost({ moment, path }: { moment: Moment; path: Moment[] }) {
  const cost = costOf(callsIn(fresh(moment, path)));
  return cost.calls > 0 && <span className="quiet">{spent(cost)}</span>;
}

interface Verdict {
  status: AnswerStatus;
  text: string;
}

/** The answer of a branch and its total cost. */
function Outcome({ thread, head }: { thread: string; head: string }) {
  const { value: last, problem } = useServer<Checkpoint>(`runs/${thread}/checkpoints/${head}`);
  if (!last) return <Problem>{problem}</Problem>;
  const verdict = last.values.verdict as unknown as Verdict | null;
  return (
    <div className={`answer is-${verdict?.status}`}>
      <p className="row">
        <Chip status={verdict?.status ?? "stopped"} />
        <span className="quiet">{spent(costOf(callsIn(last.values)))}</span>
      </p>
      <p className="answer-text">{verdict ? verdict.text || words(verdict.status) : "No answer yet."}</p>
    </div>
  );
}
