/** What is behind an answer: how it was found and what it cost, all its steps, and other runs of the question. */

import { lazy, Suspense } from "react";
import { pathTo } from "../branches";
import { when } from "../format";
import { loaded } from "../loaded";
import { lookOf } from "../outcome";
import { Busy, Problem } from "../parts";
import { hrefOf } from "../route";
import { useServer } from "../server";
import type { Moment } from "../types";
import { Warnings } from "./answer";
import { CostTable } from "./cost-table";
import { Findings } from "./findings";
import { Question, RunStatus } from "./head";
import type { ViewProps } from "./run";
import { Progress } from "./steps";

const Explorer = lazy(() => loaded(() => import("./explorer")));
const Compare = lazy(() => loaded(() => import("./compare")));

const TABS = [
  { tab: "details", label: "How this was found" },
  { tab: "explore", label: "Explore" },
  { tab: "compare", label: "Compare" },
];

export function Details({ run, outcome, answer, problem, query, onBegun, ...view }: ViewProps) {
  const { thread } = run;
  const tab = query.get("tab");
  const back = hrefOf("runs", thread.part_of || thread.id);
  return (
    <article className="page run">
      <header className="run-head">
        <a href={back}>← Back to the answer</a>
        <Question level={1}>{thread.question}</Question>
        <div className="row">
          <RunStatus run={run} look={answer ? lookOf(answer) : outcome} took={answer?.seconds ?? run.seconds} />
          <time className="quiet" dateTime={thread.created_at}>
            {when(thread.created_at)}
          </time>
        </div>
        {thread.parent && !thread.part_of && (
          <p className="quiet">
            Forked from <a href={hrefOf("runs", thread.parent, { tab: "details" })}>another run</a>
          </p>
        )}
        <Problem>{problem}</Problem>
      </header>
      <nav className="tabs" aria-label="Details">
        {TABS.map(({ tab: name, label }) => (
          <a
            key={label}
            href={hrefOf("runs", thread.id, { tab: name })}
            aria-current={tab === name ? "page" : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      <Suspense fallback={<Busy>Loading</Busy>}>
        {tab === "explore" && (
          <Explorer
            thread={thread}
            at={query.get("at") ?? ""}
            isForking={query.get("fork") !== null}
            onBegun={onBegun}
          />
        )}
        {tab === "compare" && <Compare thread={thread} a={query.get("a") ?? ""} b={query.get("b") ?? ""} />}
      </Suspense>
      {tab === "details" && (
        <div className="stack">
          {answer ? (
            <>
              <ChangePlan id={thread.id} />
              {answer.support && (
                <p>The check of the evidence gives the answer {Math.round(100 * answer.support.score)} of 100.</p>
              )}
              <Findings answer={answer} live={view.live} id={thread.id} state={run.state} />
              <Warnings answer={answer} />
              <CostTable cost={answer.cost} took={answer.seconds} />
            </>
          ) : (
            <Progress live={view.live} steps={view.live.steps} running={view.active} id={thread.id} />
          )}
        </div>
      )}
    </article>
  );
}

/** A link to fork the run at its plan; none for a run without one. */
function ChangePlan({ id }: { id: string }) {
  const { value: history } = useServer<Moment[]>(`runs/${id}/history`);
  const [newest] = history ?? [];
  const path = history && newest ? pathTo(history, newest.checkpoint) : [];
  const planned = path.find((moment) => moment.node.includes("plan"));
  const at = planned ?? path.at(-1);
  if (!at) return null;
  return (
    <p>
      <a className="button" href={hrefOf("runs", id, { tab: "explore", at: at.checkpoint, fork: "" })}>
        {planned ? "Change the plan" : "Change the state and fork"}
      </a>
    </p>
  );
}
