// The room of a session with a script: M marks the moment for all, who waits in the
// lobby is heard of, and people talk. The page stays the server's.
import { replay } from './replay'
import { voice } from './voice'

// How often somebody who waits is heard of, in ms; the timers of a hidden tab run
// that often. At the checklist its own page does.
const beatEvery = 60_000

function start(room: HTMLElement) {
  marks()
  void beat(room)
  setInterval(() => void beat(room), beatEvery)
}

async function beat(room: HTMLElement) {
  const { job, token } = room.dataset
  if (job === undefined || token === undefined || !room.isConnected) return
  try {
    const answer = await post(`/workbench/jobs/${job}/heartbeat`, { token })
    if (answer.status === 404 || answer.status === 409) document.dispatchEvent(new Event('humanqa:refresh'))
  } catch { /* it is heard of with the next one */ }
}

function post(url: string, fields: Record<string, string>): Promise<Response> {
  return fetch(url, {
    method: 'POST', body: new URLSearchParams({ ...fields, command: crypto.randomUUID?.() ?? '' }),
    headers: { Accept: 'application/json' }, redirect: 'manual', signal: AbortSignal.timeout(30_000),
  })
}

// The key is off where somebody types, and whoever wants it off has it off.
const offKey = 'humanqa:mark-key-off'

function marks() {
  const off = () => localStorage.getItem(offKey) !== null
  const show = () => {
    const at = document.getElementById('mark-key')
    if (at === null) return
    at.hidden = false
    at.setAttribute('aria-pressed', String(!off()))
  }
  show()
  document.addEventListener('humanqa:refreshed', show)
  document.addEventListener('click', (event) => {
    if ((event.target as Element).closest('#mark-key') === null) return
    if (off()) localStorage.removeItem(offKey)
    else localStorage.setItem(offKey, '1')
    show()
  })
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'm' || event.ctrlKey || event.metaKey || event.altKey || event.repeat || off()) return
    if ((event.target as Element).closest('input, textarea, select, [contenteditable]') !== null) return
    const form = document.querySelector<HTMLFormElement>('form#mark')
    if (form === null) return
    event.preventDefault()
    void mark(form)
  })
}

async function mark(form: HTMLFormElement) {
  const note = form.querySelector<HTMLInputElement>('[name=note]')
  try {
    const answer = await post(form.action, { note: note?.value ?? '' })
    if (!answer.ok) { announce('The moment was not marked. Load the page again.'); return }
    if (note !== null) note.value = ''
    announce('Marked for everyone')
    document.dispatchEvent(new Event('humanqa:refresh'))
  } catch {
    announce('The moment was not marked. The service does not answer.')
  }
}

function announce(text: string) {
  const at = document.getElementById('announcer')
  if (at !== null) at.textContent = text
}

// Last, when all that stands above is there.
voice()
replay()
const room = document.getElementById('room')
if (room !== null) start(room)
