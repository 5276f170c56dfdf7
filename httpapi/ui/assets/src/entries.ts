// The items of a checklist, while it is written: Enter goes to the next item, and adds one
// behind the last; Alt with an arrow, or the mouse at the grip, moves an item; the cross takes
// it out. The order of the fields is the order of the list, so nothing is kept here.
export function entries() {
  for (const list of document.querySelectorAll<HTMLElement>('[data-rows]')) {
    for (const entry of entriesOf(list)) tools(list, entry)
    list.addEventListener('keydown', (event) => keys(list, event))
    list.addEventListener('dragover', (event) => {
      const dragged = list.querySelector('.dragged')
      const over = (event.target as Element).closest('.entry')
      if (dragged === null || over === null || over === dragged) return
      event.preventDefault()
      const box = over.getBoundingClientRect()
      over[event.clientY > box.top + box.height / 2 ? 'after' : 'before'](dragged)
    })
  }
}

const entriesOf = (list: HTMLElement) => [...list.querySelectorAll<HTMLElement>('.entry')]

function keys(list: HTMLElement, event: KeyboardEvent) {
  const field = event.target
  const entry = field instanceof Element ? field.closest<HTMLElement>('.entry') : null
  if (entry === null || !(field instanceof HTMLTextAreaElement)) return
  const all = entriesOf(list)
  const at = all.indexOf(entry)
  if (event.key === 'Enter' && !event.isComposing) {
    event.preventDefault()
    item(all[at + 1] ?? added(list, entry)).focus()
  } else if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
    event.preventDefault()
    if (event.key === 'ArrowUp') all[at - 1]?.before(entry)
    else all[at + 1]?.after(entry)
    field.focus()
    changed(entry)
  }
}

const item = (entry: HTMLElement) => entry.querySelector<HTMLTextAreaElement>('[name="item"]')!

// changed tells the form, which keeps a draft.
const changed = (entry: HTMLElement) => entry.dispatchEvent(new Event('input', { bubbles: true }))

let count = 0

function added(list: HTMLElement, like: HTMLElement): HTMLElement {
  const entry = like.cloneNode(true) as HTMLElement
  entry.querySelector('.entry-tools')?.remove()
  count++
  for (const field of entry.querySelectorAll<HTMLElement>('textarea, select')) {
    if (field instanceof HTMLTextAreaElement) field.value = ''
    const label = entry.querySelector<HTMLLabelElement>(`label[for="${field.id}"]`)
    field.id = `added-${count}-${field.id}`
    if (label !== null) label.htmlFor = field.id
  }
  list.append(entry)
  tools(list, entry)
  return entry
}

function tools(list: HTMLElement, entry: HTMLElement) {
  const bar = document.createElement('div')
  bar.className = 'entry-tools'
  const grip = button('entry-grip', '\u22ee\u22ee', 'Move this item with the mouse, or with Alt and an arrow')
  grip.addEventListener('pointerdown', () => { entry.draggable = true })
  grip.addEventListener('pointerup', () => { entry.draggable = false })
  grip.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return
    event.preventDefault()
    const other = event.key === 'ArrowUp' ? entry.previousElementSibling : entry.nextElementSibling
    other?.[event.key === 'ArrowUp' ? 'before' : 'after'](entry)
    grip.focus()
    changed(entry)
  })
  const drop = button('entry-drop', '\u00d7', 'Take this item out')
  drop.addEventListener('click', () => {
    const next = (entry.nextElementSibling ?? entry.previousElementSibling) as HTMLElement | null
    if (next === null) item(entry).value = ''
    else entry.remove()
    item(next ?? entry).focus()
    changed(next ?? entry)
  })
  entry.addEventListener('dragstart', () => entry.classList.add('dragged'))
  entry.addEventListener('dragend', () => {
    entry.classList.remove('dragged')
    entry.draggable = false
    changed(entry)
  })
  bar.append(grip, drop)
  entry.append(bar)
}

function button(kind: string, text: string, says: string): HTMLButtonElement {
  const made = document.createElement('button')
  made.type = 'button'
  made.className = kind
  made.textContent = text
  made.setAttribute('aria-label', says)
  made.title = says
  return made
}
