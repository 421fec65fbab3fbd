import { useEffect, useState, type ReactNode } from "react";
import { seconds, when } from "../format";
import { Chip } from "../parts";
import { hrefOf } from "../route";
import type { Outcome, Run } from "../types";

interface Props {
  run: Run;
  outcome: Outcome;
  /** The color of the status. */
  look: string;
  /** The seconds that it took; those of the run are known a moment after its answer. */
  took: number | null;
  children: ReactNode;
}

/** The question of a run, its status, and when and for how long it worked; actions are the children. */
export function Head({ run, outcome, look, took, children }: Props) {
  const { thread } = run;
  return (
    <>
      <Question>{thread.question}</Question>
      <div className="row meta">
        <Chip status={look} />
        <span>{thread.method}</span>
        <time className="quiet" dateTime={thread.created_at}>
          {when(thread.created_at)}
        </time>
        {outcome === "running" ? (
          <Timer key={run.seconds} seconds={run.seconds ?? 0} />
        ) : (
          took !== null && <span className="quiet took">{seconds(took)}</span>
        )}
        {children}
      </div>
      {thread.parent && (
        <p className="quiet">
          {thread.part_of ? "Part of " : "Forked from "}
          <a href={hrefOf("runs", thread.parent)}>another run</a>
        </p>
      )}
    </>
  );
}

const TICK = 1_000;

/** The seconds that a run has worked, counted on. */
function Timer({ seconds: before }: { seconds: number }) {
  const [start] = useState(() => Date.now() - before * TICK);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK);
    return () => {
      clearInterval(timer);
    };
  }, []);
  return (
    <span role="timer" className="took">
      {Math.max(0, Math.floor((now - start) / TICK))} s
    </span>
  );
}

const LONG = 200;

/** The question; a long one is smaller and scrolls. */
function Question({ children }: { children: string }) {
  if (children.length <= LONG) return <h1>{children}</h1>;
  return (
    <div className="long" role="region" aria-label="Question" tabIndex={0}>
      <h1>{children}</h1>
    </div>
  );
}
