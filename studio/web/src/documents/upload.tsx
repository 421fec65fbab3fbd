import { useEffect, useRef, useState } from "react";
import { get, post, request, messageOf } from "../api";
import { count } from "../format";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { pause } from "../sse";
import type { Ingest } from "../types";
import { useAction } from "../server";
import { chosenIn, droppedIn, type Chosen } from "./chosen";
import { resultsOf, summaryOf } from "./summary";

const MOST = 1000;

interface Props {
  /** The id of an upload; it is part of the address, so that a reload keeps its progress. */
  ingest: string;
  onRead: () => void;
}

/** Area to drop or choose files, with the progress of the upload. */
export function Upload({ ingest, onRead }: Props) {
  const [over, setOver] = useState(false);
  const sent = useRef(new AbortController());
  const sending = useAction(async (choosing: Promise<Chosen[]>) => {
    sent.current = new AbortController();
    go(hrefOf("documents", "", { ingest: await send(await choosing, sent.current.signal) }));
  });
  const { state, problem } = useIngest(ingest, onRead);
  const busy = sending.busy || (ingest !== "" && !state?.done && !problem);
  const take = (files: Promise<Chosen[]>) => {
    if (!busy) void sending.run(files);
  };
  const drop = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(droppedIn(event.dataTransfer.items));
  };
  const drag = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  const leave = () => setOver(false);
  return (
    <section
      className={`upload ${over ? "over" : ""}`}
      aria-label="Add documents"
      onDrop={drop}
      onDragOver={drag}
      onDragLeave={leave}
    >
      <p>
        Drop files or folders here, or <Chooser label="choose files" disabled={busy} onChoose={take} /> or{" "}
        <Chooser label="a folder" folder disabled={busy} onChoose={take} />
      </p>
      {sending.busy ? (
        <Sending onCancel={() => sent.current.abort("The upload was cancelled.")} />
      ) : (
        state && <IngestProgress id={ingest} state={state} />
      )}
      <Problem>{sending.problem || problem}</Problem>
    </section>
  );
}

interface ChooserProps {
  label: string;
  /** A folder with everything in it is chosen, instead of files. */
  folder?: boolean;
  disabled: boolean;
  onChoose: (files: Promise<Chosen[]>) => void;
}

function Chooser({ label, folder = false, disabled, onChoose }: ChooserProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button className="link" disabled={disabled} onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        {...(folder && { webkitdirectory: "" })}
        hidden
        onChange={({ target }) => {
          const files = chosenIn(target.files ?? []);
          target.value = "";
          onChoose(Promise.resolve(files));
        }}
      />
    </>
  );
}

/** The progress of an upload, polled every second until it is done. */
function useIngest(id: string, onRead: () => void) {
  const [known, setKnown] = useState<{ id: string; state: Ingest | null; problem: string } | null>(null);
  const read = useRef(onRead);
  useEffect(() => {
    read.current = onRead;
  });
  useEffect(() => {
    if (!id) return;
    const closing = new AbortController();
    const follow = async () => {
      for (let done = false; !done && !closing.signal.aborted;) {
        const state = await get<Ingest>(`ingests/${id}`, closing.signal);
        setKnown({ id, state, problem: "" });
        read.current();
        done = state.done;
        if (!done) await pause(closing.signal);
      }
    };
    follow().catch((error: unknown) => {
      if (!closing.signal.aborted) setKnown({ id, state: null, problem: messageOf(error) });
    });
    return () => {
      closing.abort();
    };
  }, [id]);
  return known?.id === id ? known : { state: null, problem: "" };
}

function Sending({ onCancel }: { onCancel: () => void }) {
  return (
    <>
      <Progress label="Sending the files" />
      <button onClick={onCancel}>Cancel</button>
    </>
  );
}

/** The progress or the result of an upload. */
function IngestProgress({ id, state }: { id: string; state: Ingest }) {
  const stopping = useAction(() => post(`ingests/${id}/stop`));
  const ending = stopping.busy || state.status === "stopping";
  return (
    <>
      {state.done ? (
        <p role="status">{summaryOf(state)}</p>
      ) : (
        <>
          <Progress label={summaryOf(state)} value={state.read} max={state.total} />
          <button onClick={() => void stopping.run()} disabled={ending}>
            {ending ? "Stopping after this file…" : "Stop"}
          </button>
        </>
      )}
      <Results state={state} />
      <Problem>{stopping.problem}</Problem>
    </>
  );
}

const MOST_SHOWN = 5;

/** What happened to each file; the first errors are always shown. */
function Results({ state }: { state: Ingest }) {
  const results = resultsOf(state);
  const failed = results.filter(({ outcome }) => outcome === "failed").map(({ file, reason }) => `${file}: ${reason}`);
  const stored = state.done ? results.filter(({ outcome }) => outcome !== "failed") : [];
  return (
    <>
      {state.failed
        .filter(({ source }) => !source)
        .map(({ problem }) => (
          <Problem key={problem}>{problem}</Problem>
        ))}
      {failed.slice(0, MOST_SHOWN).map((each) => (
        <Problem key={each}>{each}</Problem>
      ))}
      {failed.length > MOST_SHOWN && (
        <details className="results">
          <summary>{count(failed.length - MOST_SHOWN, "more file")} failed</summary>
          {failed.slice(MOST_SHOWN).map((each) => (
            <Problem key={each}>{each}</Problem>
          ))}
        </details>
      )}
      {stored.length > 0 && (
        <details className="results">
          <summary>Files of this upload</summary>
          <ul aria-label="Files of this upload">
            {stored.map(({ file, outcome }) => (
              <li key={file}>
                {file} <span className="quiet">{outcome || "not ingested"}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Progress({ label, ...bar }: { label: string; value?: number; max?: number }) {
  return (
    <label className="progress">
      <span role="status">{label}</span>
      <progress {...bar} />
    </label>
  );
}

async function send(chosen: Chosen[], signal: AbortSignal): Promise<string> {
  if (!chosen.length) throw new Error("There are no files to add; hidden files in folders are left out.");
  if (chosen.length > MOST) {
    const most = count(MOST, "file");
    throw new Error(`${count(chosen.length, "file")} were chosen; one upload takes ${most}. Add parts of the folder.`);
  }
  const form = new FormData();
  for (const { name, file } of chosen) form.append("files", file, name);
  const response = await request("documents", { method: "POST", body: form, signal });
  return ((await response.json()) as { ingest: string }).ingest;
}
