/** Parts of the page that are loaded when they are first shown. */

import { get } from "./api";

const KEY = "sleuth-reloaded";
const PAUSE = 1_000;
/** A second failure within this time is not one of a new build. */
const RECENT = 30_000;

/**
 * Load a part of the page. If its file is gone, the server was restarted with another build, or is away: wait until it
 * answers, and load the whole page again.
 */
export async function loaded<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (Date.now() - Number(sessionStorage.getItem(KEY)) < RECENT) throw error;
    while (!(await get("/livez").catch(() => null))) await new Promise((resolve) => setTimeout(resolve, PAUSE));
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
    return new Promise(() => undefined);
  }
}
