import { Idiomorph } from 'idiomorph'

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

export function follow() {
  const every = Number(main()?.dataset.every ?? 0) // seconds; what changes with the time, too
  if (every > 0) setInterval(() => { if (!document.hidden) void refresh() }, every * 1000)
  if (main()?.dataset.live === undefined) return
  const channel = new BroadcastChannel('humanqa-live')
  channel.onmessage = (event) => heard(String(event.data))
  const hold = () => new Promise<never>(() => {
    const source = new EventSource('/live')
    const tell = (streams: string) => { heard(streams); channel.postMessage(streams) }
    source.addEventListener('opened', () => tell('*')) // what happened until now is unknown
    source.addEventListener('ended', () => { source.close(); tell('*') })
    source.onmessage = (event) => tell(event.data)
  })
  document.addEventListener('humanqa:refresh', () => void refresh())
  if (navigator.locks) void navigator.locks.request('humanqa-live', hold)
  else void hold()
  heard('*') // another tab may hold the stream: what changed since the page was made is unknown, too
}

function heard(streams: string) {
  const shown = main()?.dataset.live?.split(' ') ?? []
  const changed = streams.split(' ')
  if (shown.includes('*') || changed.includes('*') || shown.some((stream) => changed.includes(stream))) void refresh()
}

let due = false
let busy = false

// refresh fetches the page at its URL as it is now, and morphs into it.
export async function refresh() {
  if (busy) { due = true; return }
  busy = true
  try {
    const tag = main()?.dataset.tag ?? ''
    const asked = performance.now()
    const answer = await fetch(location.href, { headers: tag === '' ? {} : { 'If-None-Match': '"' + tag + '"' }, cache: 'no-store' })
    if (answer.redirected) {
      // Signed out, and no more for these eyes; but who has something unsaved here stays.
      if (document.dispatchEvent(new Event('humanqa:signedout', { cancelable: true }))) location.reload()
    } else if (answer.ok) {
      become(new DOMParser().parseFromString(policy.createHTML(await answer.text()) as string, 'text/html'), asked)
    }
  } catch {
    // The server is away; the stream comes back with it, and tells us.
  }
  await new Promise((wake) => setTimeout(wake, pause))
  busy = false
  if (due) { due = false; void refresh() }
}

function become(next: Document, asked: number) {
  const to = next.getElementById('main')
  const now = main()
  if (to === null || now === null) return
  document.title = next.title
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
        !(name === 'value' && (node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement) && node.value !== node.defaultValue),
    },
  })
  document.dispatchEvent(new CustomEvent('humanqa:refreshed', { detail: asked }))
}

function main(): HTMLElement | null { return document.getElementById('main') }
