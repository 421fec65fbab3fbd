import { request } from "../api";

/** Give a run a title, which lists show instead of its question; an empty one is none. */
export async function rename(id: string, title: string): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  await request(`runs/${id}/title`, {
    method: "PUT",
    headers,
    body: JSON.stringify({ title: title.slice(0, LONGEST) }),
  });
}

const LONGEST = 200;
