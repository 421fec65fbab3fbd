import { useEffect, useRef, useState } from "react";
import { get, post, request, messageOf } from "../api";
import { count } from "../format";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { pause } from "../sse";
import type { Ingest } from "../types";
import { useAction } from "../server";

interface Props {
  /** The id of an upload; it is part of the address, so that a reload keeps its progress. */
  ingest: string;
  onRead: () => void;
}

/** Area to drop or choose files, with the progress of the upload. */
export function Upload({ ingest, onRead }: Props) {
  const [over, setOver] = useState(false);
  const chosen = useRef<File[]>([]);
  const chooser = useRef<HTMLInputElement>(null);
  const sent = useRef(new AbortController());
  const sending = useAction(async () => {
    sent.current = new AbortController();
    go(hrefOf("documents", "", { ingest: await send(chosen.current, sent.current.signal) }));
  });
  const { state, problem } = useIngest(ingest, onRead);
  const busy = sending.busy || (ingest !== "" && !state?.done && !problem);
  const take = (files: FileList | null) => {
    chosen.current = [...(files ?? [])];
    if (chosen.current.length && !busy) void sending.run();
  };
  const drop = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files);
  };
  const drag = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  const leave = () => {
    setOver(false);
  };
  return (
    <section
      className={`upload ${over ? "over" : ""}`}
      aria-label="Add documents"
      onDrop={drop}
      onDragOver={drag}
      onDragLeave={leave}
    >
      <p>
        Drop files here, or{" "}
        <button className="link" disabled={busy} onClick={() => chooser.current?.click()}>
          choose files
        </button>
      </p>
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          take(event.target.files);
          event.target.value = "";
        }}
      />
      {sending.busy ? (
        <Sending
          onCancel={() => {
            sent.current.abort("The upload was cancelled.");
          }}
        />
      ) : (
        state && <IngestProgress id={ingest} state={state} />
      )}
      <Problem>{sending.problem || problem}</Problem>
    </section>
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
      {state.failed.map(({ source, problem }) => (
        <Problem key={source}>{source ? `${source}: ${problem}` : problem}</Problem>
      ))}
      <Problem>{stopping.problem}</Problem>
    </>
  );
}

function summaryOf({ status, read, total, done }: Ingest): string {
  if (status === "waiting") return "Waiting for its turn";
  if (status === "stopped") return `Stopped: ${read} of ${count(total, "file")} ingested.`;
  return done ? `${count(read, "file")} ingested.` : `${read} of ${count(total, "file")} ingested`;
}

function Progress({ label, ...bar }: { label: string; value?: number; max?: number }) {
  return (
    <label className="progress">
      <span role="status">{label}</span>
      <progress {...bar} />
    </label>
  );
}

async function send(files: File[], signal: AbortSignal): Promise<string> {
  const form = new FormData();
  for (const file of files) form.append("files", file);
  const response = await request("documents", { method: "POST", body: form, signal });
  return ((await response.json()) as { ingest: string }).ingest;
}
