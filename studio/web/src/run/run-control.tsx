import { post } from "../api";
import { Problem } from "../parts";
import { hrefOf } from "../route";
import { useAction } from "../server";
import type { Outcome, Run } from "../types";
import { RunStatus } from "./head";

const RESUMABLE: Outcome[] = ["stopped", "failed", "queued"];

interface Props {
  run: Run;
  outcome: Outcome;
  active: boolean;
  onResumed: () => void;
}

/** The status of a run without an answer, and the buttons to stop and to resume it. */
export function RunControl({ run, outcome, active, onResumed }: Props) {
  const { id } = run.thread;
  const stopping = useAction(() => post(`runs/${id}/stop`));
  const resuming = useAction(async () => {
    await post(`runs/${id}/resume`);
    onResumed();
  });
  return (
    <>
      <RunStatus run={run} look={outcome} took={run.seconds} />
      <div className="row actions">
        {active && (
          <button onClick={() => void stopping.run()} disabled={stopping.busy}>
            {stopping.busy ? "Stopping…" : "Stop"}
          </button>
        )}
        {!active && RESUMABLE.includes(outcome) && (
          <button onClick={() => void resuming.run()} disabled={resuming.busy}>
            Resume
          </button>
        )}
        <a href={hrefOf("runs", id, { tab: "details" })}>Details</a>
        <Problem>{stopping.problem || resuming.problem}</Problem>
      </div>
    </>
  );
}
