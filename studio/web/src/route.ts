/** The current view, stored in the fragment of the address: it works below any path and survives a reload. */

import { useSyncExternalStore } from "react";

export interface Place {
  /** "" for the question form, "runs" or "documents". */
  view: string;
  id: string;
  query: URLSearchParams;
}

const UNKNOWN = "?";

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", id = "", ...more] = path.split("/").map(decoded);
  if (more.length) return { view: UNKNOWN, id: "", query: new URLSearchParams() };
  return { view, id, query: new URLSearchParams(query) };
}

export function hrefOf(view: string, id = "", query: Record<string, string> = {}): string {
  const path = [view, id].filter(Boolean).map(encodeURIComponent).join("/");
  const rest = new URLSearchParams(query).toString();
  return `#/${path}${rest && `?${rest}`}`;
}

export function go(href: string): void {
  location.hash = href;
}

/** Change the address without a new entry in the history. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => {
    removeEventListener("hashchange", changed);
  };
}

export function usePlace(): Place {
  return parse(useSyncExternalStore(subscribe, () => location.hash));
}
