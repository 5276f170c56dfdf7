// What is recorded is written down in the browser slice by slice, and sent from
// there until the service has it: a crash, a reload and a lost network cost the
// slice that was being made. A recording whose tab is gone is sent to its end, and
// finished, by whichever page of the workbench is open.
import { reason, signedOut } from './outbox'

export interface Reel {
  id: string // also the id of the command that begins it
  person: string
  job: string
  token: string
  began: number // by this machine's clock
  remote?: string // its id at the service
  acked: number // bytes that are there
  refused?: string
}

interface Slice { id?: number; reel: string; at: number; data: Blob }

// The state of what is recorded, as people are told it.
export interface Sent { unsent: number; reels: number; waits: string; refused: string }

const head = 4096 // bytes in which a file says what it is: a recorder's first slice may be one byte
const gathered = 512 << 10 // bytes that are worth a request,
const patience = 5000 // or ms after which fewer are
const largest = 1 << 20 // the largest body that nginx lets through by default
const pauses = [500, 1000, 2000, 5000, 10_000]

// inUse names the lock that a recording's tab holds.
export const inUse = (reel: string) => 'humanqa-reel-' + reel

export class Reels {
  private db = open()
  private running = false
  private wake = () => {}

  constructor(private person: string, private changed: (state: Sent) => void) {
    addEventListener('online', () => this.wake())
  }

  async add(reel: Reel) { await this.write('reels', reel) }

  async append(reel: string, at: number, data: Blob) {
    await this.write('slices', { reel, at, data } satisfies Slice)
    void this.drain()
  }

  private async write(store: string, what: unknown) {
    await run((await this.db).transaction(store, 'readwrite', { durability: 'strict' }).objectStore(store).put(what))
  }

  private async all(): Promise<Reel[]> {
    const reels = await run<Reel[]>((await this.db).transaction('reels').objectStore('reels').getAll())
    return reels.filter((r) => r.person === this.person)
  }

  private async slices(reel: Reel): Promise<Slice[]> {
    return run<Slice[]>((await this.db).transaction('slices').objectStore('slices').index('reel').getAll(reel.id))
  }

  private async forget(slices: Slice[]) {
    const db = await this.db
    for (const s of slices) await run(db.transaction('slices', 'readwrite').objectStore('slices').delete(s.id!))
  }

  private async drop(reel: Reel) {
    await this.forget(await this.slices(reel))
    await run((await this.db).transaction('reels', 'readwrite').objectStore('reels').delete(reel.id))
  }

  // drain sends until everything is there. Of several tabs one does.
  async drain() {
    if (this.running) { this.wake(); return }
    this.running = true
    try {
      if (navigator.locks) await navigator.locks.request('humanqa-reels', () => this.send())
      else await this.send()
    } finally {
      this.running = false
    }
  }

  private async send() {
    let failures = 0
    for (;;) {
      const reels = await this.all()
      if (reels.length === 0) { this.changed({ unsent: 0, reels: 0, waits: '', refused: '' }); return }
      const live = new Set((await navigator.locks?.query())?.held?.map((l) => l.name))
      let busy = false
      let waits = ''
      let unsent = 0
      for (const reel of reels) {
        const outcome = await this.step(reel, live.has(inUse(reel.id)))
        busy ||= outcome.busy
        waits ||= outcome.waits
        unsent += outcome.unsent
      }
      failures = waits === '' ? 0 : failures + 1
      this.changed({ unsent, reels: reels.length, waits, refused: '' })
      if (waits !== '') await this.pause(pauses[Math.min(failures - 1, pauses.length - 1)])
      else if (!busy) await this.pause(1000)
    }
  }

  // step does one thing for a recording. Until its tab ends it, small slices wait for
  // company.
  private async step(reel: Reel, live: boolean): Promise<{ busy: boolean; waits: string; unsent: number }> {
    const slices = await this.slices(reel)
    const end = slices.reduce((most, s) => Math.max(most, s.at + s.data.size), reel.acked)
    const unsent = end - reel.acked
    const idle = { busy: false, waits: '', unsent }
    try {
      if (reel.remote === undefined) {
        if (unsent < head && live) return idle
        if (unsent === 0) { await this.drop(reel); return idle } // nothing was recorded
        const begun = await this.ask('POST', reel, '', new URLSearchParams({ token: reel.token, command: reel.id, ago: String(Math.max(0, Date.now() - reel.began)) }))
        reel.remote = begun.recordingId
        await this.add(reel)
        return { ...idle, busy: true }
      }
      if (unsent === 0) {
        if (live) return idle
        await this.ask('POST', reel, '/' + reel.remote + '/finish', new URLSearchParams({ token: reel.token }))
        await this.drop(reel)
        return { ...idle, busy: true }
      }
      if (live && unsent < gathered && Date.now() - (this.since.get(reel.id) ?? 0) < patience) return idle
      const part = new Blob(slices.filter((s) => s.at + s.data.size > reel.acked).map((s) => s.data.slice(Math.max(0, reel.acked - s.at)))).slice(0, largest)
      const query = new URLSearchParams({ token: reel.token, offset: String(reel.acked) })
      const there = await this.ask('POST', reel, `/${reel.remote}/parts?${query}`, part)
      this.since.set(reel.id, Date.now())
      await this.reached(reel, slices, there.offset)
      return { ...idle, busy: true, unsent: end - reel.acked }
    } catch (problem) {
      if (!(problem instanceof Refused)) return { ...idle, waits: problem instanceof Later ? problem.message : navigator.onLine ? 'The service does not answer.' : 'There is no network.' }
      return this.refused(reel, slices, problem.message, idle)
    }
  }

  private since = new Map<string, number>() // when a recording's last part went

  // reached notes how much is there; what is behind it is needed no more.
  private async reached(reel: Reel, slices: Slice[], offset: number) {
    reel.acked = offset
    await this.add(reel)
    await this.forget(slices.filter((s) => s.at + s.data.size <= offset))
  }

  // refused finds out what a refusal means: it goes on elsewhere, as when an answer
  // was lost, or it is over. What the service has, it finishes by itself.
  private async refused(reel: Reel, slices: Slice[], why: string, idle: { unsent: number }) {
    try {
      const there = reel.remote === undefined ? undefined : await this.ask('GET', reel, '/' + reel.remote)
      const from = slices.length === 0 ? reel.acked : slices[0].at
      if (there?.status === 'open' && there.offset !== reel.acked && there.offset >= from) {
        await this.reached(reel, slices, there.offset)
        return { busy: true, waits: '', unsent: idle.unsent }
      }
    } catch (problem) {
      if (!(problem instanceof Refused)) return { busy: false, waits: 'The service does not answer.', unsent: idle.unsent }
    }
    await this.drop(reel)
    this.changed({ unsent: 0, reels: 0, waits: '', refused: why })
    document.dispatchEvent(new CustomEvent('humanqa:reel-refused', { detail: reel.id }))
    return { busy: true, waits: '', unsent: 0 }
  }

  private async ask(method: string, reel: Reel, path: string, body?: BodyInit): Promise<{ recordingId: string; status: string; offset: number }> {
    const answer = await fetch(`/workbench/jobs/${reel.job}/recordings${path}`, {
      method, body, headers: { Accept: 'application/json' }, redirect: 'manual', cache: 'no-store', signal: AbortSignal.timeout(body instanceof Blob ? 120_000 : 30_000),
    })
    if (answer.type === 'opaqueredirect') throw new Later(signedOut)
    if (answer.status >= 500 || answer.status === 429) throw new Later('The service does not answer.')
    const proxys = !answer.headers.get('Content-Type')?.includes('json') // its limit can be raised
    if (answer.status === 413 && proxys) throw new Later(await reason(answer, body instanceof Blob ? body.size : 0))
    if (!answer.ok) throw new Refused(await reason(answer))
    return answer.json()
  }

  private pause(ms: number): Promise<void> {
    return new Promise((go) => {
      const timer = setTimeout(go, ms)
      this.wake = () => { clearTimeout(timer); go() }
    })
  }
}

class Later extends Error {}
class Refused extends Error {}

function open(): Promise<IDBDatabase> {
  const asked = indexedDB.open('humanqa-reels', 1)
  asked.onupgradeneeded = () => {
    asked.result.createObjectStore('reels', { keyPath: 'id' })
    asked.result.createObjectStore('slices', { keyPath: 'id', autoIncrement: true }).createIndex('reel', 'reel')
  }
  return run(asked)
}

function run<T>(asked: IDBRequest<T>): Promise<T> {
  return new Promise((done, failed) => {
    const of = asked.transaction
    asked.onerror = () => failed(asked.error)
    if (of !== null && of.mode === 'readwrite') {
      of.oncomplete = () => done(asked.result)
      of.onabort = () => failed(of.error)
    } else asked.onsuccess = () => done(asked.result)
  })
}
