// What every page may do once there is a script. Nothing here is needed: without
// it a page is as it was loaded, and every form still works.
import { entries } from './entries'
import { follow, refresh } from './live'
import { passkeys } from './passkey'
import { palette } from './palette'
import { picks } from './picks'
import { players } from './player'
import { told } from './told'
import { verifies } from './verify'
import { zones } from './zones'

follow()
zones()
passkeys()
ages()
copies()
scrubs()
countdowns()
players()
verifies()
strip()
palette()
told()
onces()
entries()
picks()
kept()
refused()

// A form with data-once is sent once, however often it is clicked: a second answer would
// hide the first, which may show a secret.
function onces() {
  document.addEventListener('submit', (event) => {
    const form = event.target as HTMLFormElement
    if (form.dataset.once === undefined) return
    if (form.dataset.once === 'sent') event.preventDefault()
    form.dataset.once = 'sent'
  })
  addEventListener('pageshow', () => {
    for (const form of document.querySelectorAll<HTMLFormElement>('form[data-once]')) form.dataset.once = ''
  })
}

// A form with data-draft is kept on the server while it is filled in, a moment after
// each change and when the page is left. A field that the server does not know as part
// of a draft stays here.
function kept() {
  const form = document.querySelector<HTMLFormElement>('form[data-draft]')
  if (form === null) return
  let timer = 0
  let changed = false
  const send = (leaving: boolean) => {
    clearTimeout(timer)
    if (!changed) return
    changed = false
    const fields = new URLSearchParams()
    for (const [name, value] of new FormData(form)) if (name !== 'access' && name !== 'command' && typeof value === 'string') fields.append(name, value)
    void fetch(form.dataset.draft!, { method: 'POST', body: fields, headers: { Accept: 'application/json' }, keepalive: leaving }).catch(() => { changed = true })
  }
  form.addEventListener('input', () => {
    changed = true
    clearTimeout(timer)
    timer = setTimeout(() => send(false), 800)
  })
  form.addEventListener('submit', () => { changed = false; clearTimeout(timer) })
  addEventListener('pagehide', () => send(true))
}

// Where the address names a place, the browser gives the focus to no field: the first error
// of a refused form has it all the same.
function refused() {
  if (location.hash === '') return
  addEventListener('load', () => setTimeout(() => document.querySelector<HTMLElement>('[autofocus]')?.focus())) // it has scrolled by then
}

// On a narrow screen the tabs are a strip, which begins with the chosen one in sight, and
// with the end of the one before it: there is more on that side.
function strip() {
  const show = () => {
    const at = document.querySelector<HTMLElement>('.sidebar nav [aria-current="page"]')
    const nav = at?.closest('nav')
    if (at && nav) nav.scrollLeft += at.getBoundingClientRect().left - nav.getBoundingClientRect().left - 40
  }
  show()
  addEventListener('resize', show)
}

// Times say how long ago they were, and go on saying so.
function ages() {
  setInterval(() => {
    for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-ago]')) {
      const text = ago(Date.now() - Date.parse(time.dateTime))
      if (text !== '' && time.textContent !== text) time.textContent = text
    }
  }, 20_000)
}

function ago(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (ms < 45_000) return 'just now'
  if (ms < 3_600_000) return count(Math.max(1, minutes), 'minute') + ' ago'
  if (ms < 36 * 3_600_000) return count(Math.round(ms / 3_600_000), 'hour') + ' ago'
  return '' // the server said it in days
}

function count(n: number, noun: string): string {
  return n === 1 ? '1 ' + noun : n + ' ' + noun + 's'
}

// A time with data-until is counted down to. When it has come, and while
// something is on its way (data-sending), the page fetches itself again: no stream
// tells of it.
function countdowns() {
  let ticks = 0
  setInterval(() => {
    let arrived = document.querySelector('[data-sending]') !== null
    for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-until]')) {
      const seconds = Math.ceil((Date.parse(time.dateTime) - Date.now()) / 1000)
      arrived ||= seconds <= 0
      if (seconds < 3600) time.textContent = seconds <= 0 ? 'now' : seconds < 60 ? `in ${seconds} s` : 'in ' + count(Math.round(seconds / 60), 'minute')
    }
    if (arrived && ++ticks % 2 === 0 && document.getElementById('main')?.dataset.live !== undefined) void refresh()
  }, 1000)
}

// A button with data-copy puts the text of the element it names on the clipboard.
function copies() {
  document.addEventListener('click', async (event) => {
    const button = (event.target as Element).closest<HTMLElement>('[data-copy]')
    if (button === null) return
    const source = document.getElementById(button.dataset.copy!)
    if (source === null) return
    try {
      await navigator.clipboard.writeText((source.textContent ?? '').trim())
      announce('Copied')
      button.classList.add('copied')
      setTimeout(() => button.classList.remove('copied'), 1500)
    } catch {
      getSelection()?.selectAllChildren(source) // no clipboard here: it is at least marked
      announce('Selected: copy it with your keyboard')
    }
  })
}

function announce(text: string) {
  const at = document.getElementById('announcer')
  if (at !== null) at.textContent = text
}

// A slider in a form with data-scrub shows where it stands at once: the page of
// that place, morphed into this one.
function scrubs() {
  document.addEventListener('input', (event) => {
    const slider = event.target as HTMLInputElement
    const form = slider.type === 'range' ? slider.closest<HTMLFormElement>('form[data-scrub]') : null
    if (form === null) return
    slider.defaultValue = slider.value // as the page of that place has it
    history.replaceState(null, '', form.action.split('?')[0] + '?' + new URLSearchParams(new FormData(form) as unknown as Record<string, string>))
    void refresh()
  })
}
