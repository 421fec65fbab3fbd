import { useSyncExternalStore } from "react";

const WIDE = "(width >= 70rem)";

/** True if there is room for the sources beside the answer, and for drawn graphs. */
export function useWide(): boolean {
  return useSyncExternalStore(subscribe, () => matchMedia(WIDE).matches);
}

function subscribe(changed: () => void): () => void {
  const query = matchMedia(WIDE);
  query.addEventListener("change", changed);
  return () => {
    query.removeEventListener("change", changed);
  };
}
