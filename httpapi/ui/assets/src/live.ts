import { Idiomorph } from 'idiomorph'
import { released } from './press'

// An open page that shows something live (main[data-live], the streams it shows)
// fetches itself when one of them changed, and morphs into what came.
//
// A browser has six connections to one server: so one tab holds the stream, and
// tells the others.

type TrustedPolicy = { createHTML(html: string): string }
declare global {
  interface Window { trustedTypes?: { createPolicy(name: string, rules: TrustedPolicy): TrustedPolicy } }
}

const policy: TrustedPolicy = window.trustedTypes?.createPolicy('page', { createHTML: (html) => html }) ?? { createHTML: (html) => html }

// No more than four times a second, however much changes.
const pause = 250
// What could not be fetched is fetched again, each time later, up to this many ms: the
// change that it was for is not told twice.
const longest = 30_000
// So long may the answer to a form take to leave this page.
const leaving = 5_000

export function follow() {
  const every = Number(main()?.dataset.every ?? 0) // seconds; what changes with the time, too
  if (every > 0) setInterval(() => { if (!document.hidden) void refresh() }, every * 1000)
  if (main()?.dataset.live === undefined) return
  const channel = new BroadcastChannel('humanqa-live')
  channel.onmessage = (event) => heard(String(event.data))
  const hold = () => new Promise<never>(() => listen((streams) => { heard(streams); channel.postMessage(streams) }))
  document.addEventListener('humanqa:refresh', () => void refresh())
  if (navigator.locks) void navigator.locks.request('humanqa-live', hold)
  else void hold()
  heard('*') // another tab may hold the stream: what changed since the page was made is unknown, too
}

// listen holds the stream. The browser opens it again by itself where its connection broke off,
// but not where it was refused, as by a proxy while the service starts.
function listen(tell: (streams: string) => void, refusals = 0) {
  const source = new EventSource('/live')
  source.addEventListener('opened', () => { refusals = 0; tell('*') }) // what happened until now is unknown
  source.addEventListener('ended', () => { source.close(); tell('*') })
  source.onmessage = (event) => tell(event.data)
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(tell, refusals + 1), later(refusals + 1))
  }
}

// later is the wait after so many failures, in ms, not the same for all browsers.
function later(failures: number): number { return Math.min(longest, 2 ** failures * pause) * (0.5 + Math.random()) }

function heard(streams: string) {
  const shown = main()?.dataset.live?.split(' ') ?? []
  const changed = streams.split(' ')
  if (shown.includes('*') || changed.includes('*') || shown.some((stream) => changed.includes(stream))) void refresh()
}

let due = false
let busy = false
let failures = 0 // one after the other
let sent = -Infinity // when a form was, which may be the one that signs out: its answer says where to go
addEventListener('submit', (event) => { if (!event.defaultPrevented) sent = performance.now() })

// refresh fetches the page at its URL as it is now, and morphs into it.
export async function refresh() {
  if (busy) { due = true; return }
  busy = true
  try {
    const tag = main()?.dataset.tag ?? ''
    const asked = performance.now()
    const answer = await fetch(location.href, {
      headers: tag === '' ? {} : { 'If-None-Match': '"' + tag + '"' }, cache: 'no-store', signal: AbortSignal.timeout(longest),
    })
    if (answer.redirected && performance.now() - sent < leaving) {
      due = true
    } else if (answer.redirected) {
      // Signed out, and no more for these eyes; but who has something unsaved here stays.
      if (document.dispatchEvent(new Event('humanqa:signedout', { cancelable: true }))) location.reload()
    } else if (answer.ok) {
      const text = await answer.text()
      await released()
      become(new DOMParser().parseFromString(policy.createHTML(text) as string, 'text/html'), asked)
    }
    if (answer.status === 404) document.dispatchEvent(new Event('humanqa:notfound'))
    failures = answer.status === 429 || answer.status >= 500 ? failures + 1 : 0
  } catch {
    failures++
  }
  due ||= failures > 0
  await new Promise((wake) => setTimeout(wake, failures === 0 ? pause : later(failures)))
  busy = false
  if (due) { due = false; void refresh() }
}

function become(next: Document, asked: number) {
  const to = next.getElementById('main')
  const now = main()
  if (to === null || now === null) return
  if (to.dataset.account !== now.dataset.account) return elsewhere(now)
  document.title = next.title
  const focused = document.activeElement?.id ?? ''
  Idiomorph.morph(now, to, {
    // Only of a field: of anything else that has the focus it would leave all
    // that is in it as it was.
    ignoreActiveValue: document.activeElement?.matches('input, textarea, select') ?? false,
    callbacks: {
      // What a script of the page keeps is its own.
      beforeNodeMorphed: (node: Node) => !(node instanceof Element && node.hasAttribute('data-own')),
      // What somebody opened, typed, or is about to send stays theirs.
      beforeAttributeUpdated: (name: string, node: Element) =>
        !(name === 'open' && node instanceof HTMLDetailsElement) &&
        !(name === 'value' && node instanceof HTMLInputElement && node.name === 'command') &&
        !(name === 'checked' && node instanceof HTMLInputElement && node.checked !== node.defaultChecked) &&
        !(name === 'selected' && node instanceof HTMLOptionElement && chosen(node.closest('select')!)) &&
        !(name === 'value' && (node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement) && node.value !== node.defaultValue),
    },
  })
  document.dispatchEvent(new CustomEvent('humanqa:refreshed', { detail: asked }))
  // A script of the page made its part anew.
  if (focused !== '' && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true })
}

// chosen says that somebody chose another option than the page came with.
function chosen(at: HTMLSelectElement): boolean {
  return at.selectedOptions[0] !== ([...at.options].find((option) => option.defaultSelected) ?? at.options[0])
}

// elsewhere says that the page is of an account that was chosen no longer, by another tab:
// what is half written here stays there.
function elsewhere(now: HTMLElement) {
  if (document.getElementById('elsewhere') !== null) return
  const said = Object.assign(document.createElement('p'), { id: 'elsewhere', className: 'notice notice-warn' })
  said.setAttribute('role', 'status')
  said.append('You chose another account in another tab. This page still shows the previous account. ', Object.assign(document.createElement('a'), { href: location.href, textContent: 'Load it again' }))
  now.prepend(said)
}

function main(): HTMLElement | null { return document.getElementById('main') }
