// The browser tells an account's people of reports and problems while a page of the
// dashboard is open. It is off until a button is pressed, and stays as this browser was
// told. One tab asks for all of them.
import { allowed, ask, possible, show } from './notice'

interface News { id: string; title: string; text: string; href: string }

const wanted = 'humanqa:told' // 'on'
const cursor = 'humanqa:told-after' // what was told last
const pause = 20_000 // ms between two questions
const several = 3 // more than so many at once are told in one

export function told() {
  const path = document.querySelector<HTMLElement>('[data-news]')?.dataset.news
  if (path === undefined) return
  switches()
  if (navigator.locks) void navigator.locks.request('humanqa-told', () => watch(path))
  else void watch(path)
}

function on(): boolean { return localStorage.getItem(wanted) === 'on' && allowed() }

// watch asks for news, until the tab is closed.
async function watch(path: string): Promise<never> {
  for (;;) {
    if (on()) await look(path)
    const rested = new AbortController()
    await new Promise<void>((wake) => {
      setTimeout(wake, pause)
      // Something changed: it may be what the person waits for.
      for (const name of ['humanqa:refreshed', 'humanqa:told']) document.addEventListener(name, () => wake(), { signal: rested.signal })
    })
    rested.abort()
  }
}

async function look(path: string) {
  try {
    const after = localStorage.getItem(cursor) ?? ''
    const answer = await fetch(path + '?' + new URLSearchParams({ after }), { headers: { Accept: 'application/json' }, signal: AbortSignal.timeout(pause) })
    if (answer.status === 400 || answer.status === 422) localStorage.removeItem(cursor) // of another service
    if (!answer.ok || answer.redirected) return
    const { cursor: next, news } = await answer.json() as { cursor: string; news: News[] }
    localStorage.setItem(cursor, next)
    if (news.length > several) show(news.length + ' tests and notices', 'The dashboard has them.', 'humanqa-told', '/dashboard')
    else for (const one of news) show(one.title, one.text, one.id, one.href)
  } catch { /* it is asked again */ }
}

function switches() {
  const at = document.getElementById('told')
  if (at === null) return
  const button = at.querySelector<HTMLButtonElement>('[data-told]')!
  const says = at.querySelector<HTMLElement>('[role=status]')!
  const set = () => { button.setAttribute('aria-pressed', String(on())) }
  button.hidden = !possible()
  if (!possible()) says.textContent = 'This browser has no notifications.'
  button.addEventListener('click', async () => {
    if (on()) {
      localStorage.removeItem(wanted)
      says.textContent = ''
    } else {
      says.textContent = await ask()
      if (says.textContent === '') {
        localStorage.setItem(wanted, 'on')
        localStorage.removeItem(cursor) // from now on
        document.dispatchEvent(new Event('humanqa:told'))
      }
    }
    set()
  })
  set()
}
