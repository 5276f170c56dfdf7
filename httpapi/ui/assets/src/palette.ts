// Ctrl+K opens a list of tests, projects, pages and acts over any page of an account.
// Without scripts its link leads to a page with the same list.

type Hit = { kind: string; text: string; detail: string; href: string }

// So long may typing rest before the server is asked, in ms.
const rest = 120

export function palette() {
  const link = document.querySelector<HTMLAnchorElement>('[data-palette]')
  if (link === null) return
  const parts = build(link.href)
  let asked: AbortController | undefined
  let timer = 0

  const ask = async () => {
    asked?.abort()
    asked = new AbortController()
    const { signal } = asked
    try {
      const answer = await fetch(link.pathname + '?q=' + encodeURIComponent(parts.input.value), { headers: { Accept: 'application/json' }, signal })
      if (answer.redirected) { location.reload(); return } // signed out
      if (!answer.ok) throw new Error(answer.statusText)
      parts.show(await answer.json() as Hit[])
    } catch {
      if (!signal.aborted) parts.say('The search does not answer. Try again.')
    }
  }
  const open = () => {
    if (parts.dialog.open) return
    parts.input.value = ''
    parts.show([])
    parts.say('')
    parts.dialog.showModal()
    void ask()
  }
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return
    event.preventDefault()
    open()
  })
  link.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return // a tab of its own
    event.preventDefault()
    open()
  })
  parts.input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(() => void ask(), rest)
  })
}

// build makes the dialog: a field that leads a list, by the pattern of a combobox.
function build(action: string) {
  const dialog = document.body.appendChild(document.createElement('dialog'))
  dialog.className = 'palette'
  dialog.setAttribute('aria-label', 'Search')
  const form = dialog.appendChild(document.createElement('form'))
  form.action = action
  const input = form.appendChild(document.createElement('input'))
  for (const [name, value] of Object.entries({
    name: 'q', type: 'search', placeholder: 'Search tests, projects, people, pages and actions', maxlength: '200', autocomplete: 'off',
    role: 'combobox', 'aria-label': 'Search tests, projects, people, pages and actions', 'aria-autocomplete': 'list', 'aria-controls': 'palette-hits', 'aria-expanded': 'false',
  })) input.setAttribute(name, value)
  const list = dialog.appendChild(document.createElement('ul'))
  list.className = 'hits'
  list.id = 'palette-hits'
  list.setAttribute('role', 'listbox')
  list.setAttribute('aria-label', 'Results')
  const status = dialog.appendChild(document.createElement('p'))
  status.setAttribute('role', 'status')

  let hits: Hit[] = []
  let at = 0
  const mark = () => {
    [...list.children].forEach((row, i) => row.setAttribute('aria-selected', String(i === at)))
    const row = list.children[at]
    if (row === undefined) input.removeAttribute('aria-activedescendant')
    else input.setAttribute('aria-activedescendant', row.id)
    row?.scrollIntoView({ block: 'nearest' })
  }
  const go = (hit: Hit | undefined) => {
    if (hit === undefined) return
    dialog.close()
    location.assign(hit.href)
  }
  const say = (text: string) => { status.textContent = text }
  const show = (next: Hit[]) => {
    hits = next
    at = 0
    list.replaceChildren(...hits.map((hit, i) => {
      const row = document.createElement('li')
      row.id = `palette-hit-${i}`
      row.setAttribute('role', 'option')
      const kind = row.appendChild(document.createElement('span'))
      kind.className = 'kind'
      kind.textContent = hit.kind
      const words = row.appendChild(document.createElement('span'))
      words.textContent = hit.text
      if (hit.detail !== '') words.appendChild(document.createElement('small')).textContent = hit.detail
      row.addEventListener('click', () => go(hit))
      return row
    }))
    list.hidden = hits.length === 0
    input.setAttribute('aria-expanded', String(hits.length > 0))
    say(hits.length === 0 ? 'Nothing matches.' : '')
    mark()
  }
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined || hits.length === 0) return
    event.preventDefault()
    at = (at + step + hits.length) % hits.length
    mark()
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    go(hits[at])
  })
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close() })
  return { dialog, input, show, say }
}
