import { useEffect } from "react";
import { when } from "./format";
import { Chip, Problem } from "./parts";
import { hrefOf } from "./route";
import type { Thread } from "./types";
import { useLoaded } from "./use";

const CHANGED = "sleuth-runs";

/** Tells the list that there is a run more, or that one has ended. */
export function runsChanged(): void {
  dispatchEvent(new Event(CHANGED));
}

/** The latest runs, each run's hops below it. */
export function RunList({ current }: { current: string }) {
  const { value: threads, problem, reload } = useLoaded<Thread[]>("runs?limit=50");
  useEffect(() => {
    addEventListener(CHANGED, reload);
    return () => {
      removeEventListener(CHANGED, reload);
    };
  }, [reload]);
  if (problem) return <Problem>{problem}</Problem>;
  if (threads?.length === 0) return <p className="quiet">There are no runs yet.</p>;
  return (
    <ul className="runs">
      {inFamilies(threads ?? []).map((thread) => (
        <li key={thread.id} className={thread.part_of ? "hop" : undefined}>
          <a href={hrefOf("runs", thread.id)} aria-current={thread.id === current ? "page" : undefined}>
            <span className="question">{thread.part_of ? `hop: ${thread.method}` : thread.question}</span>
            <span className="about">
              <Chip status={thread.status} /> {thread.method} · {when(thread.updated_at)}
            </span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function inFamilies(threads: Thread[]): Thread[] {
  const ids = new Set(threads.map((thread) => thread.id));
  const hopsOf = (id: string) => threads.filter((thread) => thread.part_of === id).reverse();
  const outer = threads.filter((thread) => !ids.has(thread.part_of));
  return outer.flatMap((thread) => [thread, ...hopsOf(thread.id)]);
}
