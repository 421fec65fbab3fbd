import { useState, type ReactNode } from "react";
import { Confirm } from "./dialog";
import { count } from "./format";
import { Problem } from "./parts";
import { useAction } from "./server";

interface Props {
  ids: readonly string[];
  /** What is selected, as in "run". */
  noun: string;
  /** What is not lost by deleting. */
  remark: string;
  remove: (id: string) => Promise<void>;
  /** Some were deleted. */
  onGone: () => void;
  /** The selection is no longer needed. */
  onDone: () => void;
  /** Other actions. */
  children?: ReactNode;
}

/** What can be done with the selected rows of a table. */
export function Selection({ ids, noun, remark, remove, onGone, onDone, children }: Props) {
  const deleting = useAction(async () => {
    try {
      for (const id of ids) await remove(id);
      onDone();
    } finally {
      onGone();
    }
  });
  return (
    <div className="selection" role="status">
      {ids.length > 0 && (
        <div className="row">
          <strong>{count(ids.length, noun)} selected</strong>
          {children}
          <DeleteButton title={`Delete ${count(ids.length, noun)}?`} remark={remark} deleting={deleting} />
          <button className="plain" onClick={onDone}>
            Clear the selection
          </button>
        </div>
      )}
      <Problem>{deleting.problem}</Problem>
    </div>
  );
}

interface DeleteProps {
  /** The question before something is deleted. */
  title: string;
  remark: string;
  deleting: { busy: boolean; run: () => Promise<void> };
  label?: string;
}

/** A button that deletes something after a question. */
export function DeleteButton({ title, remark, deleting, label }: DeleteProps) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button aria-label={label} disabled={deleting.busy} onClick={() => setAsking(true)}>
        {deleting.busy ? "Deleting…" : "Delete"}
      </button>
      {asking && (
        <Confirm title={title} action="Delete" onConfirm={() => void deleting.run()} onClose={() => setAsking(false)}>
          {remark}
        </Confirm>
      )}
    </>
  );
}
