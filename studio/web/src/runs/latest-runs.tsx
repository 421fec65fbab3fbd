import { when } from "../format";
import { pauseOf } from "../outcome";
import { Problem, RunChip } from "../parts";
import { hrefOf } from "../route";
import { useServer } from "../server";
import type { Thread } from "../types";

const LATEST = "runs?limit=20&subruns=false";

/** The latest runs, for the navigation. */
export function LatestRuns({ current }: { current: string }) {
  const { value: runs, problem } = useServer<Thread[]>(LATEST, pauseOf);
  if (!runs) return <Problem>{problem}</Problem>;
  if (!runs.length) return <p className="quiet">No runs yet.</p>;
  return (
    <ul className="runs">
      {runs.map((run) => (
        <li key={run.id}>
          <a href={hrefOf("runs", run.id)} aria-current={run.id === current ? "page" : undefined}>
            <span className="question">{run.question}</span>
            <span className="about">
              <RunChip run={run} /> <time>{when(run.updated_at)}</time>
            </span>
          </a>
        </li>
      ))}
    </ul>
  );
}
