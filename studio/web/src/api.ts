/** Requests to the server, with the API key if there is one. */

const KEY = "sleuth-key";

/** The page is at the server's root or at `app/` below it; `v1/` is always below the root. */
export function serverRoot(pathname: string): string {
  return pathname.replace(/\/(app\/?)?(index\.html)?$/, "/");
}

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

let askForKey: () => void = () => undefined;

/** Set the handler of responses that require a key. */
export function onUnauthorized(handler: () => void): void {
  askForKey = handler;
}

export function hasKey(): boolean {
  return sessionStorage.getItem(KEY) !== null;
}

export function keepKey(key: string): void {
  sessionStorage.setItem(KEY, key);
}

let reachable = true;
const listeners = new Set<() => void>();

/** False after a request that got no response. */
export function isReachable(): boolean {
  return reachable;
}

/** Call a function whenever the server was lost or is back; returns a function that ends this. */
export function onReachable(changed: () => void): () => void {
  listeners.add(changed);
  return () => {
    listeners.delete(changed);
  };
}

function setReachable(now: boolean): void {
  if (reachable === now) return;
  reachable = now;
  for (const changed of listeners) changed();
}

function headers(given?: HeadersInit): Headers {
  const all = new Headers(given);
  const key = sessionStorage.getItem(KEY);
  if (key) all.set("Authorization", `Bearer ${key}`);
  return all;
}

async function problem(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  const message = (body as { error?: { message?: string } } | null)?.error?.message;
  return new ApiError(message ?? `The server answered ${response.status} ${response.statusText}.`, response.status);
}

/** Send a request below `v1/` or to `/healthz`; throws ApiError with the server's message. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const url = `${serverRoot(location.pathname)}${path.startsWith("/") ? path.slice(1) : `v1/${path}`}`;
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers: headers(init.headers) });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    setReachable(false);
    throw new ApiError("The server cannot be reached.", 0);
  }
  setReachable(true);
  if (response.status === 401) askForKey();
  if (!response.ok) throw await problem(response);
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  const json = { "Content-Type": "application/json" };
  const response = await request(path, { method: "POST", headers: json, body: JSON.stringify(body) });
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

export async function remove(path: string): Promise<void> {
  await request(path, { method: "DELETE" });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
