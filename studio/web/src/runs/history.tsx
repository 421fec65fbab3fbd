/** The conversations in the navigation, by day; each can be renamed and deleted. */

import { useState } from "react";
import { remove } from "../api";
import { Confirm } from "../dialog";
import { day } from "../format";
import { lookOfRun, pauseOf, statusInWords } from "../outcome";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { refresh, useAction, useServer } from "../server";
import type { Thread } from "../types";
import { rename } from "./rename";

const LATEST = "runs?limit=60&subruns=false";

/** The latest conversations. A run that a chat follows up on is a part of that chat. */
export function History({ current }: { current: string }) {
  const { value: runs, problem } = useServer<Thread[]>(LATEST, pauseOf);
  if (!runs) return <Problem>{problem}</Problem>;
  if (!runs.length) return <p className="quiet">No conversations yet.</p>;
  return byDay(conversationsIn(runs)).map(([name, listed]) => (
    <section key={name} aria-label={name}>
      <h2>{name}</h2>
      <ul>
        {listed.map((run) => (
          <Item key={run.id} run={run} isCurrent={run.id === current} />
        ))}
      </ul>
    </section>
  ));
}

/** The runs that no other one continues. */
export function conversationsIn(runs: readonly Thread[]): Thread[] {
  const continued = new Set(runs.map(({ options }) => options.after));
  return runs.filter(({ id }) => !continued.has(id));
}

/** The runs by the day of their last change, in their order. */
export function byDay(runs: readonly Thread[], now = new Date()): [string, Thread[]][] {
  const days = new Map<string, Thread[]>();
  for (const run of runs) {
    const name = day(run.updated_at, now);
    days.set(name, [...(days.get(name) ?? []), run]);
  }
  return [...days];
}

function Item({ run, isCurrent }: { run: Thread; isCurrent: boolean }) {
  const [doing, setDoing] = useState<"" | "renaming" | "deleting">("");
  const name = run.title || run.question;
  const done = () => setDoing("");
  const deletion = useAction(async () => {
    await remove(`runs/${run.id}`);
    if (run.options.after) await remove(`runs/${run.options.after}`).catch(() => undefined); // its first answer
    refresh("runs?");
    if (isCurrent) go(hrefOf(""));
  });
  const look = lookOfRun(run);
  if (doing === "renaming") return <Rename run={run} name={name} onDone={done} />;
  return (
    <li className="item">
      <a href={hrefOf("runs", run.id)} title={name} aria-current={isCurrent ? "page" : undefined}>
        <span className={`dot is-${look}`} />
        <span className="name">{name}</span>
        <span className="unseen">, {statusInWords(look)}</span>
      </a>
      <button className="plain" aria-label={`Rename: ${name}`} onClick={() => setDoing("renaming")}>
        ✎
      </button>
      <button className="plain" aria-label={`Delete: ${name}`} onClick={() => setDoing("deleting")}>
        ✕
      </button>
      <Problem>{deletion.problem}</Problem>
      {doing === "deleting" && (
        <Confirm title="Delete this conversation?" action="Delete" onConfirm={() => void deletion.run()} onClose={done}>
          It is deleted with all its steps. Documents are not affected.
        </Confirm>
      )}
    </li>
  );
}

function Rename({ run, name, onDone }: { run: Thread; name: string; onDone: () => void }) {
  const [title, setTitle] = useState(name);
  const saving = useAction(async () => {
    await rename(run.id, title.trim() === run.question ? "" : title);
    refresh("runs?");
    onDone();
  });
  return (
    <li className="item">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void saving.run();
        }}
      >
        <input
          ref={(field) => field?.focus()}
          aria-label="New name"
          maxLength={200}
          value={title}
          onChange={(event) => setTitle(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") onDone();
          }}
        />
        <Problem>{saving.problem}</Problem>
      </form>
    </li>
  );
}
