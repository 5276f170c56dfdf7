// While somebody types what they found, in a finding or in an item's note: which of
// the project's open failures it sounds like. One press says that a finding is the
// same, or names it in the note.

interface Known { key: string; description: string; severity: string; firstFailedAt: string }

const rest = 400 // ms without a key before the service is asked
const least = 4 // characters that are worth asking

// similar follows the fields of a finding and the items' notes; ended says that there is no claim any more.
export function similar(job: string, ended: () => boolean) {
  const form = () => document.getElementById('finding') as HTMLFormElement | null
  const field = (name: string) => form()!.querySelector<HTMLInputElement | HTMLTextAreaElement>(`#finding-${name}`)!
  const part = (id: string) => document.getElementById(id)!
  let asked: AbortController | null = null
  let timer = 0
  let item = '' // whose note it is; empty: the finding's

  // A page that came meanwhile may have other elements.
  const panel = () => document.getElementById(item === '' ? 'similar' : 'similar-' + item)
  const note = () => document.getElementById(item === '' ? 'finding-note' : 'note-' + item) as HTMLTextAreaElement | null
  const typed = () => ((item === '' && form() !== null ? field('what').value + ' ' : '') + (note()?.value ?? '')).trim()

  function hide() {
    clearTimeout(timer)
    asked?.abort()
    const at = panel()
    if (at !== null) at.hidden = true
  }

  async function ask() {
    asked?.abort()
    const asking = asked = new AbortController()
    const text = typed()
    try {
      const answer = await fetch(`/workbench/jobs/${job}/open-failures?` + new URLSearchParams({ text }), {
        headers: { Accept: 'application/json' }, redirect: 'manual', cache: 'no-store', signal: asking.signal,
      })
      const found: Known[] = answer.ok ? await answer.json() : []
      if (asking === asked && !asking.signal.aborted && !ended() && typed() === text) show(found)
    } catch { /* it is asked with the next key */ }
  }

  function show(found: Known[]) {
    const at = panel()
    if (at === null) return
    at.hidden = found.length === 0
    at.querySelector('[role=status]')!.textContent = found.length === 0 ? '' : found.length === 1 ? 'One open failure is similar:' : found.length + ' open failures are similar:'
    at.querySelector('ul')!.replaceChildren(...found.map((one) => {
      const row = document.createElement('li')
      const words = document.createElement('div')
      words.append(
        Object.assign(document.createElement('span'), { textContent: one.description }),
        Object.assign(document.createElement('small'), { className: 'muted', textContent: `${one.severity}, failing since ${day(one)}` }))
      row.append(words)
      if (item === '') row.append(press('This is the same', one, () => take(one))) // an item has a lineage of its own
      row.append(press('Mention it in the note', one, () => cite(one)))
      return row
    }))
  }

  function press(text: string, one: Known, act: () => void) {
    const button = Object.assign(document.createElement('button'), { type: 'button', className: 'btn btn-quiet', textContent: text })
    button.setAttribute('aria-label', `${text}: ${one.description}`)
    button.addEventListener('click', act)
    return button
  }

  // fill writes as somebody typing would: drafts are kept of it.
  function fill(at: HTMLInputElement | HTMLTextAreaElement, text: string) {
    at.value = text
    at.dispatchEvent(new Event('input', { bubbles: true }))
  }

  function take(one: Known) {
    const what = field('what').value.trim()
    // What was typed is about this one: it is kept beside it.
    if (what !== '' && what !== one.description && field('note').value.trim() === '') fill(field('note'), what)
    fill(field('what'), one.description)
    const severity = form()!.querySelector<HTMLSelectElement>('#finding-severity')!
    severity.value = one.severity
    same(one.key, one.description)
    hide()
    field('note').focus()
  }

  function cite(one: Known) {
    const at = note()
    if (at === null) return
    const known = `Known: "${one.description}", failing since ${day(one)}.`
    fill(at, [at.value.trim(), known].filter(Boolean).join('\n').slice(0, 2000))
    hide()
    at.focus()
  }

  function same(key: string, description: string) {
    const at = part('same')
    at.hidden = key === ''
    at.querySelector('input')!.value = key
    at.querySelector('b')!.textContent = description
  }

  // of says which item's note a field is; null: nothing that is followed.
  function of(target: HTMLElement): string | null {
    if (target.id === 'finding-what' || target.id === 'finding-note') return ''
    return target instanceof HTMLTextAreaElement ? target.closest<HTMLElement>('li[data-item]')?.dataset.item ?? null : null
  }

  document.addEventListener('input', (event) => {
    const where = of(event.target as HTMLElement)
    if (where === null || ended()) return
    if (where !== item) hide()
    item = where
    clearTimeout(timer)
    if (!event.isTrusted || item === '' && part('same').querySelector('input')!.value !== '') return
    if (typed().length < least) hide()
    else timer = setTimeout(() => void ask(), rest)
  })
  document.addEventListener('click', (event) => {
    if ((event.target as HTMLElement).closest('#same button') === null) return
    same('', '')
    field('what').focus()
  })

  return {
    said(of: string) { if (of === item) hide() },
    clear() {
      hide()
      if (form() !== null) same('', '')
    },
  }
}

const day = (one: Known) => new Date(one.firstFailedAt).toLocaleDateString('en', { day: 'numeric', month: 'long', year: 'numeric' })
