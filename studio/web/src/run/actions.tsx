import { post, remove } from "../api";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { runsChanged } from "../run-list";
import { useAction } from "../use";

interface Props {
  id: string;
  running: boolean;
  done: boolean;
  onResumed: () => void;
}

/** Buttons to stop an active run, and to resume or delete a stopped one. */
export function Actions({ id, running, done, onResumed }: Props) {
  const stopping = useAction(() => post(`runs/${id}/stop`));
  const resuming = useAction(async () => {
    await post(`runs/${id}/resume`);
    onResumed();
  });
  const deleting = useAction(async () => {
    if (!confirm("Delete this run and all its checkpoints?")) return;
    await remove(`runs/${id}`);
    runsChanged();
    go(hrefOf(""));
  });
  return (
    <div className="row actions">
      {running && (
        <button className="danger" onClick={() => void stopping.run()} disabled={stopping.busy}>
          {stopping.busy ? "Stopping…" : "Stop"}
        </button>
      )}
      {!running && !done && (
        <button className="primary" onClick={() => void resuming.run()} disabled={resuming.busy}>
          Resume
        </button>
      )}
      {!running && (
        <button onClick={() => void deleting.run()} disabled={deleting.busy}>
          Delete run
        </button>
      )}
      <Problem>{stopping.problem || resuming.problem || deleting.problem}</Problem>
    </div>
  );
}
