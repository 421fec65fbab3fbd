/** What a person has chosen for this browser: the model, the colors, all settings for research. */

import { useSyncExternalStore } from "react";

const PREFIX = "sleuth-";
const listeners = new Set<() => void>();

type Name = "model" | "theme" | "research";

/** The value of a preference; "" if nothing is chosen. */
export function preference(name: Name): string {
  return localStorage.getItem(PREFIX + name) ?? "";
}

export function setPreference(name: Name, value: string): void {
  localStorage.setItem(PREFIX + name, value);
  for (const changed of listeners) changed();
}

/** The value of a preference, also after it was changed elsewhere on the page. */
export function usePreference(name: Name): string {
  return useSyncExternalStore(subscribe, () => preference(name));
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => {
    listeners.delete(changed);
  };
}

/** Show the page in the chosen colors; without a choice in those of the system. */
export function applyTheme(): void {
  document.documentElement.style.colorScheme = preference("theme");
}
