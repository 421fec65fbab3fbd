import { treeOf } from "../branches";
import { when } from "../format";
import { hrefOf } from "../route";
import { useServer } from "../server";
import type { Moment } from "../types";

/** Says that a run has several branches, with a link to each; the answer is that of the newest one. */
export function BranchBanner({ id }: { id: string }) {
  const { value: history } = useServer<Moment[]>(`runs/${id}/history`);
  const heads = history ? treeOf(history).heads : [];
  if (heads.length < 2) return null;
  const newest = heads.reduce((a, b) => (a.at > b.at ? a : b));
  return (
    <nav className="hint" aria-label="Branches">
      This run has {heads.length} branches; the answer of the newest one is shown.{" "}
      {heads.map((head, at) => (
        <span key={head.checkpoint}>
          {at > 0 && " · "}
          <a href={hrefOf("runs", id, { tab: "explore", at: head.checkpoint })}>
            Branch {at + 1}, {when(head.at)}
          </a>
          {head === newest && " (shown)"}
        </span>
      ))}{" "}
      · <a href={hrefOf("runs", id, { tab: "compare" })}>Compare</a>
    </nav>
  );
}
