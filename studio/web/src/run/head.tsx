import { useEffect, useState } from "react";
import { seconds } from "../format";
import { Chip } from "../parts";
import type { Run } from "../types";

interface Props {
  run: Run;
  /** The color of the status. */
  look: string;
  /** The seconds that it took; those of the run are known a moment after its answer. */
  took: number | null;
}

/** The status of a run, its method, and for how long it worked. */
export function RunStatus({ run, look, took }: Props) {
  return (
    <p className="status">
      <Chip status={look} /> <span>{run.thread.method}</span>{" "}
      {look === "running" ? (
        <Timer key={run.seconds} seconds={run.seconds ?? 0} />
      ) : (
        took !== null && <span className="took">{seconds(took)}</span>
      )}
    </p>
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

/** The question of a turn, the first one as the title of the page; a long one is smaller and scrolls. */
export function Question({ children, level }: { children: string; level: number }) {
  const Heading = level > 1 ? "h2" : "h1";
  if (children.length <= LONG) return <Heading className="asked">{children}</Heading>;
  return (
    <div className="long" role="region" aria-label="Question" tabIndex={0}>
      <Heading className="asked">{children}</Heading>
    </div>
  );
}
