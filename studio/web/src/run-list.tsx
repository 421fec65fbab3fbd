import { useEffect, useState } from "react";
import { when } from "./format";
import { Chip, Problem } from "./parts";
import { hrefOf } from "./route";
import type { Thread } from "./types";
import { useLoaded } from "./use";

const CHANGED = "sleuth-runs";
const PAGE = 50;

/** Reload the list after a run has started or ended. */
export function runsChanged(): void {
  dispatchEvent(new Event(CHANGED));
}

/** The latest runs with their sub-runs, and a button for older ones. */
export function RunList({ current }: { current: string }) {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const changed = () => {
      setVersion((before) => before + 1);
    };
    addEventListener(CHANGED, changed);
    return () => {
      removeEventListener(CHANGED, changed);
    };
  }, []);
  return <Page before="" version={version} current={current} />;
}

interface PageProps {
  before: string;
  version: number;
  current: string;
}

function Page({ before, version, current }: PageProps) {
  const query = new URLSearchParams({ limit: String(PAGE), ...(before && { before }) }).toString();
  const { value: threads, problem } = useLoaded<Thread[]>(`runs?${query}`, version);
  const [older, setOlder] = useState("");
  if (!threads) return <Problem>{problem}</Problem>;
  if (!threads.length && !before) return <p className="quiet">No runs yet.</p>;
  const last = threads.length === PAGE ? threads.at(-1) : undefined;
  return (
    <>
      <ul className="runs">
        {withSubRuns(threads).map((thread) => (
          <li key={thread.id} className={thread.part_of ? "hop" : undefined}>
            <a href={hrefOf("runs", thread.id)} aria-current={thread.id === current ? "page" : undefined}>
              <span className="question">{thread.part_of ? `sub-run: ${thread.method}` : thread.question}</span>
              <span className="about">
                <Chip status={thread.state} /> {thread.method} · {when(thread.updated_at)}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {older && <Page before={older} version={version} current={current} />}
      {last && !older && (
        <button
          onClick={() => {
            setOlder(last.updated_at);
          }}
        >
          Older runs
        </button>
      )}
    </>
  );
}

function withSubRuns(threads: Thread[]): Thread[] {
  const ids = new Set(threads.map((thread) => thread.id));
  const subRunsOf = (id: string) => threads.filter((thread) => thread.part_of === id).reverse();
  const outer = threads.filter((thread) => !ids.has(thread.part_of));
  return outer.flatMap((thread) => [thread, ...subRunsOf(thread.id)]);
}
