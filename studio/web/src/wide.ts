import { useSyncExternalStore } from "react";

const WIDE = matchMedia("(width >= 70rem)");

/** True if there is room for the sources beside the answer, and for drawn graphs. */
export function useWide(): boolean {
  return useSyncExternalStore(subscribe, () => WIDE.matches);
}

function subscribe(changed: () => void): () => void {
  WIDE.addEventListener("change", changed);
  return () => {
    WIDE.removeEventListener("change", changed);
  };
}
