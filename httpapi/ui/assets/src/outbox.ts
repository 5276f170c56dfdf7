// What a checker says goes through here: it is written down in the browser first,
// then sent in order, one at a time, until the service has it. A crash, a reload
// and a lost network lose nothing. Every entry is a form of the page, with the id
// of its command, so that sent twice it counts once.

export interface Entry {
  id?: number
  person: string
  job: string
  token: string
  kind: string // check, picture, hide, finding, edit, withdraw, complete, release, untestable
  url: string
  command: string
  fields: Record<string, string>
  item?: string
  file?: File
  label: string // what it is, for people
  refused?: string // why the service did not take it
  pressed?: number // when it was said, where that matters: by this machine's clock, as Date.now
}

// The state of the outbox, as people are told it.
export type State = 'saved' | 'saving' | 'waiting'

export interface Events {
  // changed: entries came or went.
  changed(entries: Entry[]): void
  state(state: State, unsaved: number, why: string): void
  // done: the service has the entry; next is where it leads.
  done(entry: Entry, next: string): void
  refused(entry: Entry, why: string): void
}

// How long to wait before an entry is sent again, in ms; the last one repeats.
const pauses = [500, 1000, 2000, 5000, 10_000]

export class Outbox {
  private db: Promise<IDBDatabase>
  private running = false
  private stopped = false
  private wake = () => {}

  constructor(private person: string, private job: string, private token: string, private events: Events) {
    this.db = open()
    addEventListener('online', () => this.wake())
  }

  // all gives what of this person is not saved yet, the oldest first.
  async all(): Promise<Entry[]> {
    const entries = await run<Entry[]>((await this.db).transaction('entries').objectStore('entries').getAll())
    return entries.filter((e) => e.person === this.person)
  }

  // mine are those that belong to the page's claim and may be sent.
  async mine(): Promise<Entry[]> {
    return (await this.all()).filter((e) => e.job === this.job && e.token === this.token && e.refused === undefined)
  }

  async add(entry: Omit<Entry, 'person' | 'job' | 'token' | 'command'>) {
    await this.put({ ...entry, person: this.person, job: this.job, token: this.token, command: crypto.randomUUID() })
    this.events.changed(await this.mine())
    void this.drain()
  }

  async put(entry: Entry) {
    await run((await this.db).transaction('entries', 'readwrite', { durability: 'strict' }).objectStore('entries').put(entry))
  }

  async remove(entry: Entry) {
    await run((await this.db).transaction('entries', 'readwrite').objectStore('entries').delete(entry.id!))
  }

  // again sends an older claim's entry under the page's own.
  async again(entry: Entry) {
    await this.put({ ...entry, token: this.token, refused: undefined, command: crypto.randomUUID() })
    this.events.changed(await this.mine())
    void this.drain()
  }

  stop() { this.stopped = true; this.wake() }

  // drain sends until nothing is left. Of several tabs one does.
  async drain() {
    if (this.running || this.job === '' || this.token === '') return
    this.running = true
    const hold = async () => {
      let failures = 0
      while (!this.stopped) {
        const entries = await this.mine()
        if (entries.length === 0) break
        if (failures === 0) this.events.state('saving', entries.length, '')
        const outcome = await send(entries[0])
        if (this.stopped && outcome.kind !== 'done') break // what the service has is never offered again
        if (outcome.kind === 'later') {
          this.events.state('waiting', (await this.mine()).length, outcome.why)
          await this.pause(pauses[Math.min(failures++, pauses.length - 1)])
          continue
        }
        failures = 0
        if (outcome.kind === 'done') {
          await this.remove(entries[0])
          this.events.done(entries[0], outcome.next)
        } else {
          await this.put({ ...entries[0], refused: outcome.why })
          this.events.refused(entries[0], outcome.why)
        }
        this.events.changed(await this.mine())
      }
    }
    try {
      if (navigator.locks) await navigator.locks.request('humanqa-outbox', hold)
      else await hold()
    } finally {
      this.running = false
    }
    const left = await this.mine()
    if (this.stopped) return
    if (left.length > 0) void this.drain() // it came while the lock was let go
    else this.events.state('saved', 0, '')
  }

  private pause(ms: number): Promise<void> {
    return new Promise((go) => {
      const timer = setTimeout(go, ms)
      this.wake = () => { clearTimeout(timer); go() }
    })
  }
}

export const signedOut = 'You are signed out. Sign in again in another tab.'

type Outcome = { kind: 'done'; next: string } | { kind: 'later'; why: string } | { kind: 'refused'; why: string }

async function send(entry: Entry): Promise<Outcome> {
  let url = entry.url
  let body: URLSearchParams | FormData
  if (entry.file !== undefined) {
    body = new FormData()
    body.set('file', entry.file)
    url += '?' + new URLSearchParams({ token: entry.token, command: entry.command }).toString()
  } else {
    body = new URLSearchParams({ ...entry.fields, token: entry.token, command: entry.command })
    if (entry.pressed !== undefined) body.set('ago', String(Math.max(0, Date.now() - entry.pressed)))
  }
  try {
    const answer = await fetch(url, {
      method: 'POST', body, headers: { Accept: 'application/json' }, redirect: 'manual',
      signal: AbortSignal.timeout(entry.file === undefined ? 30_000 : 300_000),
    })
    if (answer.type === 'opaqueredirect') return { kind: 'later', why: signedOut }
    if (answer.ok) return { kind: 'done', next: (await answer.json()).next }
    if (answer.status >= 500 || answer.status === 429) return { kind: 'later', why: 'The service does not answer.' }
    return { kind: 'refused', why: await reason(answer, entry.file?.size) }
  } catch {
    return { kind: 'later', why: navigator.onLine ? 'The service does not answer.' : 'There is no network.' }
  }
}

// reason is what the refusal of so many bytes says. A proxy says nothing that can be shown.
export async function reason(answer: Response, bytes = 0): Promise<string> {
  try {
    const said = await answer.json()
    return [said.error, said.hint].filter(Boolean).join(' ')
  } catch {
    if (answer.status !== 413) return 'The service said ' + answer.status + '.'
    return `A proxy in front of the service refused ${size(bytes)} (413). Ask the operator to raise its limit.`
  }
}

export function size(bytes: number): string {
  return bytes < 1 << 20 ? Math.ceil(bytes / 1024) + ' KB' : (bytes / (1 << 20)).toFixed(1) + ' MB'
}

// usable says that this browser keeps what is written down, and makes ids.
export async function usable(): Promise<boolean> {
  if (!isSecureContext) return false
  return open().then((db) => { db.close(); return true }, () => false)
}

function open(): Promise<IDBDatabase> {
  const asked = indexedDB.open('humanqa', 1)
  asked.onupgradeneeded = () => asked.result.createObjectStore('entries', { keyPath: 'id', autoIncrement: true })
  return run(asked)
}

function run<T>(asked: IDBRequest<T>): Promise<T> {
  return new Promise((done, failed) => {
    const of = asked.transaction
    asked.onerror = () => failed(asked.error)
    // A write counts once its transaction has ended.
    if (of !== null && of.mode === 'readwrite') of.oncomplete = () => done(asked.result)
    else asked.onsuccess = () => done(asked.result)
  })
}
