// The client of the Human QA Testing Service. It needs fetch and Web Crypto, and nothing else.
//
// Requests outlast a lost network, refusals are of one class, wait follows a test to its end,
// list walks the pages of a list, and verify checks webhooks. The types are those of the API's
// document: they narrow on status, and those of webhooks on event.
import type { components, paths, webhooks } from "./types.js";

export type Schemas = components["schemas"];

type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : never;

/** How a test stands: with a result if its status is completed. */
export type Status =
  | (Schemas["HostedStatus"] & { status: "completed"; result: Schemas["HostedResult"] })
  | (Schemas["HostedStatus"] & { status: Exclude<Schemas["HostedStatus"]["status"], "completed">; result?: undefined });

/** An AI report: whole if its status is completed. */
export type AIReport =
  | (Required<Omit<Schemas["AIReport"], "status" | "asOf">> & { status: "completed"; asOf?: string })
  | (Pick<Schemas["AIReport"], "jobId" | "asOf"> & { status: "generating" });

/** The body of a webhook, told apart by its event. */
export type Webhook = {
  [E in keyof webhooks]: webhooks[E] extends { post: { requestBody?: infer Body } } ? Json<Body> & { event: E; type: E } : never;
}[keyof webhooks];

type Method = "get" | "post" | "put" | "patch";
type Has<M extends Method> = { [K in M]: { responses: unknown } };
/** The paths that take a method. */
export type Path<M extends Method> = { [P in keyof paths]: paths[P] extends Has<M> ? P : never }[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Has<M> ? paths[P][M] : never;
type Said<R> = { [S in keyof R & (200 | 201 | 202)]: Json<R[S]> }[keyof R & (200 | 201 | 202)];
/** What a path answers to a method. */
export type Answer<P extends keyof paths, M extends Method> = P extends "/v1/hosted/status/{jobId}"
  ? Status
  : P extends "/v1/jobs/{id}/ai-report" ? AIReport
  : Operation<P, M> extends { responses: infer R } ? Said<R> : never;
/** What a path takes with a method. */
export type Body<P extends keyof paths, M extends Method> = Operation<P, M> extends { requestBody?: infer B }
  ? Json<NonNullable<B>> : undefined;

export interface Options {
  /** Fills the {…} of the path. */
  path?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  /** The Idempotency-Key of a post; without one of yours each call gets one for its repeats. */
  key?: string;
  signal?: AbortSignal;
}

export interface Waiting {
  /** Ends the wait; the test goes on. */
  signal?: AbortSignal;
  /** Hears of each state. */
  changed?: (now: Status) => void;
}

/** The service refused a call. Match its code or status, never its text. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly code: string;
  readonly hint?: string;
  readonly requestId?: string;
  readonly details: Schemas["ErrorDetail"][];

  constructor(
    readonly status: number,
    /** With its further keys, such as creditsShort. */
    readonly body: Partial<Schemas["Error"]>,
    /** In milliseconds; 0 if the service named no time. */
    readonly retryAfter = 0,
  ) {
    const told = body.error ?? `the answer was ${status}`; // a proxy's page, say
    super(body.hint ? `${told}: ${body.hint}` : told);
    this.code = body.code ?? `HTTP_${status}`;
    this.hint = body.hint;
    this.requestId = body.requestId;
    this.details = body.details ?? [];
  }

  /** Whether the same call may succeed later. A 409 may while an earlier attempt is being answered. */
  get passing(): boolean {
    return this.status === 429 || this.status >= 500 || (this.status === 409 && this.retryAfter > 0);
  }
}

/** There was no answer, or no whole one. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** A webhook was not signed with the secret, or not over these bytes, or too long ago. */
export class NotGenuine extends Error {
  override readonly name = "NotGenuine";
  constructor() {
    super("the signature does not match");
  }
}

const attempt = 45_000; // of one attempt; the service holds an answer for 25 s at most
const patience = 60_000; // within which a call is repeated
const hold = 25;
const betweenLooks = 2_000; // a key has sixty requests a minute
const tolerance = 300; // seconds that the clocks of sender and receiver may be apart

/** Client calls the service at base, such as https://qa.example.com, with one key. */
export class Client {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;

  constructor(base: string, key: string, options: { fetch?: typeof fetch } = {}) {
    const url = new URL(base);
    if (url.protocol !== "https:" && (url.protocol !== "http:" || !["localhost", "127.0.0.1", "[::1]"].includes(url.hostname))) {
      throw new TypeError(`the key would go to ${url.host} in the clear: use an https:// URL`);
    }
    this.#base = base.replace(/\/+$/, "");
    this.#headers = { Authorization: `Bearer ${key}`, Accept: "application/json" };
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  get<P extends Path<"get">>(path: P, options?: Options): Promise<Answer<P, "get">> {
    return this.#call("GET", path, undefined, options) as Promise<Answer<P, "get">>;
  }

  /** The call has one effect under its Idempotency-Key, however often it is sent. */
  post<P extends Path<"post">>(path: P, body: Body<P, "post">, options?: Options): Promise<Answer<P, "post">> {
    const key = options?.key ?? crypto.randomUUID();
    return this.#call("POST", path, body, { ...options, key }) as Promise<Answer<P, "post">>;
  }

  patch<P extends Path<"patch">>(path: P, body: Body<P, "patch">, options?: Options): Promise<Answer<P, "patch">> {
    return this.#call("PATCH", path, body, options) as Promise<Answer<P, "patch">>;
  }

  /**
   * Follows a test until it has ended, and gives its last state. A lost network costs time and
   * nothing else. The signal bounds the wait.
   */
  async wait(jobId: string, { signal, changed }: Waiting = {}): Promise<Status> {
    let etag = "";
    for (let looks = 0, failures = 0; ; looks++) {
      let pause = betweenLooks;
      try {
        const options = { path: { jobId }, query: { wait: looks > 0 ? hold : undefined }, signal };
        const answer = await this.#once("GET", "/v1/hosted/status/{jobId}", undefined, options, etag);
        failures = 0;
        if (answer.status !== 304) {
          etag = answer.etag;
          const now = answer.body as Status;
          changed?.(now);
          if (now.isFinal) return now;
        }
      } catch (error) {
        if (!passing(error)) throw error;
        pause = pauseAfter(error, ++failures);
      }
      await sleep(pause, signal);
    }
  }

  /** Walks a list page by page: client.list("/v1/jobs", "jobs", { query: { status: "completed" } }). */
  async *list<P extends Path<"get">, K extends keyof Answer<P, "get">>(
    path: P, part: K, options: Options = {},
  ): AsyncGenerator<Answer<P, "get">[K] extends readonly (infer Item)[] ? Item : never> {
    for (let query = options.query; ; ) {
      const page = (await this.get(path, { ...options, query })) as Record<string, any>;
      const items: any[] = page[part as string];
      yield* items;
      const behind = next(page, items.length);
      if (!behind) return;
      query = { ...query, ...behind };
    }
  }

  async #call(method: string, path: string, body: unknown, options: Options = {}): Promise<unknown> {
    const began = Date.now();
    for (let failures = 1; ; failures++) {
      try {
        return (await this.#once(method, path, body, options)).body;
      } catch (error) {
        if (!passing(error) || Date.now() - began > patience) throw error;
        await sleep(pauseAfter(error, failures), options.signal);
      }
    }
  }

  async #once(method: string, path: string, body: unknown, { path: parts, query, key, signal }: Options, etag = "") {
    const url = new URL(this.#base + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts?.[name] ?? "")));
    for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = { ...this.#headers };
    if (key) headers["Idempotency-Key"] = key;
    if (etag) headers["If-None-Match"] = etag;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const late = AbortSignal.timeout(attempt);
    let answer: Response;
    let text: string;
    try {
      answer = await this.#fetch(url, {
        method, headers, body: body === undefined ? undefined : JSON.stringify(body),
        redirect: "manual", // one would carry the key to an address that was not named
        signal: signal ? AbortSignal.any([signal, late]) : late,
      });
      text = await answer.text();
    } catch (cause) {
      signal?.throwIfAborted();
      throw new Unreachable(`the service cannot be reached at ${this.#base}`, { cause });
    }
    if (answer.ok || answer.status === 304) {
      return { status: answer.status, etag: answer.headers.get("etag") ?? "", body: text ? (JSON.parse(text) as unknown) : undefined };
    }
    throw new Refused(answer.status, objectIn(text), 1000 * (Number(answer.headers.get("retry-after")) || 0));
  }
}

function objectIn(text: string): Partial<Schemas["Error"]> {
  try {
    return (JSON.parse(text) as Partial<Schemas["Error"]> | null) ?? {};
  } catch {
    return {};
  }
}

const passing = (error: unknown): boolean => error instanceof Unreachable || (error instanceof Refused && error.passing);

function pauseAfter(error: unknown, failures: number): number {
  if (error instanceof Refused && error.retryAfter > 0) return Math.min(error.retryAfter, 60_000);
  return Math.min(500 * 2 ** (failures - 1), 15_000) * (0.5 + Math.random() / 2);
}

function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

/** The query of the next page: behind the cursor that the page names, or behind its items. */
function next(page: Record<string, any>, items: number): Options["query"] | undefined {
  for (const [name, parameter] of [["nextCursor", "cursor"], ["next", "after"]] as const) {
    if (name in page) return page[name] === null || page.hasMore === false ? undefined : { [parameter]: page[name] };
  }
  const offset = (page.offset ?? 0) + items;
  return items > 0 && offset < (page.total ?? 0) ? { offset } : undefined;
}

/**
 * Checks that the service sent a webhook, by the raw body and the headers as they came, and gives
 * its event. While the secret is rotated the old one passes, and the new one does. Throws NotGenuine.
 */
export async function verify(
  body: Uint8Array | string, headers: Headers | Record<string, string | string[] | undefined>, secret: string,
): Promise<Webhook> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const given = (name: string) => String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? "");
  const sent = given("webhook-timestamp");
  let signed = bytes;
  let signatures = given("webhook-signature").split(" ");
  let key = keyOf(secret);
  let read = (text: string) => (text.startsWith("v1,") ? fromBase64(text.slice(3)) : undefined);
  if (!sent && !given("webhook-signature")) { // without Standard Webhooks the header of the service's own decides
    [signatures, key, read] = [[given("x-service-signature")], new TextEncoder().encode(secret), fromHex];
  } else {
    if (!/^\d{1,12}$/.test(sent) || Math.abs(Date.now() / 1000 - Number(sent)) > tolerance) throw new NotGenuine();
    const head = new TextEncoder().encode(`${given("webhook-id")}.${sent}.`);
    signed = new Uint8Array(head.length + bytes.length);
    signed.set(head);
    signed.set(bytes, head.length);
  }
  const hmac = await crypto.subtle.importKey("raw", key as BufferSource, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  for (const text of signatures) {
    const signature = read(text); // subtle.verify compares in constant time
    if (signature && (await crypto.subtle.verify("HMAC", hmac, signature as BufferSource, signed as BufferSource))) {
      return JSON.parse(new TextDecoder().decode(bytes)) as Webhook;
    }
  }
  throw new NotGenuine();
}

/** The key that Standard Webhooks make of a secret: base64 behind whsec_, or the text itself. */
function keyOf(secret: string): Uint8Array {
  const encoded = secret.startsWith("whsec_") && secret.slice(6).replace(/=+$/, "").replaceAll("-", "+").replaceAll("_", "/");
  return (encoded && fromBase64(encoded)) || new TextEncoder().encode(secret);
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function fromHex(text: string): Uint8Array | undefined {
  return /^([0-9a-f]{2})+$/.test(text) ? Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16)) : undefined;
}
