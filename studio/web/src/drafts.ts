import { useState } from "react";

const PREFIX = "sleuth-draft:";

/** A text that is typed, kept until the tab is closed: it survives leaving the view and reloading the page. */
export function useDraft(name: string, storage = sessionStorage): [string, (text: string) => void] {
  const [text, setText] = useState(() => storage.getItem(PREFIX + name) ?? "");
  const keep = (typed: string) => {
    setText(typed);
    keepDraft(name, typed, storage);
  };
  return [text, keep];
}

/** Set a draft that another view shows. */
export function keepDraft(name: string, text: string, storage = sessionStorage): void {
  if (text) storage.setItem(PREFIX + name, text);
  else storage.removeItem(PREFIX + name);
}
