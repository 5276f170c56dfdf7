// The checklist in a small window over the tested app: picture-in-picture where the
// browser has it for documents, else a popup. It shows what the page shows, and
// everything that is said in it the page says.

export interface Bench {
  rows(): HTMLElement[]
  current(): HTMLElement | null
  go(row: HTMLElement): void
  press(key: string): boolean // one of the page's single keys
  settle(row: HTMLElement, status: string, note: string, severity: string): void
  over(): boolean // nothing can be said any more
  keys(): boolean // single keys are on
  complain(text: string): void
}

interface PictureInPicture { requestWindow(options: { width: number; height: number }): Promise<Window> }

const size = { width: 400, height: 560 }
// What of the page's keys makes sense away from it.
const taken = 'psujkmv1234'

export function floats(bench: Bench) {
  let win: Window | null = null
  let asking = '' // fail or note: the form is open for it
  let about = '' // the item that it is open for

  const part = <T extends HTMLElement>(name: string) => win!.document.querySelector<T>(`[data-f=${name}]`)!
  const note = () => win!.document.getElementById('floating-note') as HTMLTextAreaElement
  const severity = () => win!.document.getElementById('floating-severity') as HTMLSelectElement

  async function open() {
    if (win !== null && !win.closed) { win.focus(); return }
    const over = (window as unknown as { documentPictureInPicture?: PictureInPicture }).documentPictureInPicture
    win = await over?.requestWindow(size).catch(() => null) ?? window.open('', 'humanqa-float', `popup,width=${size.width},height=${size.height}`)
    if (win === null) { bench.complain('This browser opens no window: allow popups here.'); return }
    const at = win.document
    at.documentElement.lang = 'en'
    at.head.replaceChildren(...[...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')].map((sheet) =>
      Object.assign(at.createElement('link'), { rel: 'stylesheet', href: sheet.href })))
    at.head.append(Object.assign(at.createElement('meta'), { name: 'color-scheme', content: 'light dark' }))
    at.title = document.title
    at.body.replaceChildren(at.importNode((document.getElementById('floating') as HTMLTemplateElement).content, true))
    at.addEventListener('keydown', pressed)
    at.addEventListener('click', clicked)
    part('form').addEventListener('submit', (event) => { event.preventDefault(); settle() })
    win.addEventListener('pagehide', () => { win = null })
    asking = ''
    paint()
    part('item').focus()
  }

  function paint() {
    if (win === null || win.closed) return
    const row = bench.current()
    const over = bench.over()
    if (asking !== '' && row?.dataset.item !== about) asking = ''
    tick()
    part('over').hidden = !over
    for (const name of ['item', 'list']) part(name).hidden = over
    part('verdicts').hidden = over || asking !== ''
    part('form').hidden = over || asking === ''
    if (row === null) return
    part('verdict').replaceChildren(win.document.importNode(row.querySelector('.slot')!.firstElementChild!, true))
    write(part('title'), row.querySelector('.what > b')!.textContent!)
    write(part('expected'), [...row.querySelectorAll('.what > .asked, .what > .expected:not(.why)')].map((line) => line.textContent!.trim()).join(' '))
    const ask = row.querySelector('.ask')
    part('ask').hidden = ask === null
    if (ask !== null && part('ask').childElementCount === 0) part('ask').append(...[...ask.children].map((button) => win!.document.importNode(button, true)))
    const list = part('list')
    const rows = bench.rows()
    while (list.children.length > rows.length) list.lastElementChild!.remove()
    rows.forEach((one, n) => {
      if (n >= list.children.length) {
        list.append(win!.document.createElement('li'))
        list.lastElementChild!.append(Object.assign(win!.document.createElement('button'), { type: 'button', className: 'link' }))
      }
      const button = list.children[n].firstElementChild as HTMLElement
      button.dataset.item = one.dataset.item
      button.toggleAttribute('aria-current', one === row)
      const icon = one.querySelector('.slot .verdict')!
      if (button.dataset.status !== one.dataset.status || button.lastChild?.textContent !== one.querySelector('.what > b')!.textContent) {
        button.dataset.status = one.dataset.status
        button.replaceChildren(win!.document.importNode(icon, true), one.querySelector('.what > b')!.textContent!)
      }
    })
  }

  // write leaves alone what is said already: it would be read out again.
  function write(at: HTMLElement, text: string) { if (at.textContent !== text) at.textContent = text }

  function tick() {
    if (win === null || win.closed) return
    const talk = document.querySelector<HTMLElement>('[data-voice] :is([data-join], [data-mute]):not([hidden])')
    part('talk').hidden = talk === null || bench.over()
    if (talk !== null) {
      const button = part('talk').querySelector('button')!
      write(button, talk.textContent)
      button.setAttribute('aria-pressed', talk.getAttribute('aria-pressed') ?? 'false')
      const now = [...document.querySelectorAll('[data-voice] .speaks.now')].map((name) => name.textContent)
      write(part('talking'), now.length === 0 ? '' : now.join(', ') + (now.length === 1 ? ' speaks' : ' speak'))
    }
    for (const name of ['clock', 'left', 'saved']) write(part(name), document.getElementById(name)?.textContent?.trim() ?? '')
  }

  function ask(what: string) {
    const row = bench.current()
    if (row === null) return
    asking = what
    about = row.dataset.item!
    note().value = note().defaultValue = row.querySelector('textarea')!.value
    severity().value = row.querySelector<HTMLSelectElement>('[name=severity]')!.value
    paint()
    note().focus()
  }

  function settle() {
    const row = bench.current()
    const status = asking === 'fail' ? 'fail' : row?.dataset.status
    if (row === null || status === undefined || row.dataset.item !== about) return
    asking = ''
    bench.settle(row, status, note().value, severity().value)
    paint()
    part('item').focus()
  }

  function cancel() {
    asking = ''
    paint()
    part('item').focus()
  }

  function act(key: string): boolean {
    if (bench.over()) return false
    if (key === 'f' || key === 'n') { ask(key === 'f' ? 'fail' : 'note'); return true }
    if ('123'.includes(key) && bench.current()?.querySelector('.ask') === null) { // no reason of a skip is asked for
      ask('fail')
      severity().selectedIndex = Number(key) - 1
      return true
    }
    if (key === '.') { win!.close(); return true }
    if (!taken.includes(key) && key !== 'escape' || !bench.press(key)) return false
    paint()
    return true
  }

  function pressed(event: KeyboardEvent) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return
    const target = event.target as HTMLElement
    if (asking !== '' && event.key === 'Escape') { event.preventDefault(); cancel(); return }
    if (asking !== '' && event.key === 'Enter' && !event.shiftKey && (target === note() || target === severity())) {
      event.preventDefault()
      settle()
      return
    }
    if (target === severity() && bench.keys() && severity().options[Number(event.key) - 1] !== undefined) {
      event.preventDefault()
      severity().selectedIndex = Number(event.key) - 1
      return
    }
    if (!bench.keys() || target.closest('select, textarea') !== null) return
    if (act(event.key.toLowerCase())) event.preventDefault()
  }

  function clicked(event: MouseEvent) {
    const target = event.target as HTMLElement
    const key = target.closest<HTMLElement>('[data-key]')?.dataset.key
    if (key !== undefined) { act(key); return }
    if (target.closest('[data-f=cancel]') !== null) { cancel(); return }
    const item = target.closest<HTMLElement>('[data-item]')?.dataset.item
    const row = bench.rows().find((one) => one.dataset.item === item)
    if (row !== undefined) { bench.go(row); paint() }
  }

  setInterval(tick, 1000)
  addEventListener('pagehide', () => win?.close())
  return { open: () => void open(), paint }
}
