// The workbench with a script: verdicts by single keys, pictures by paste and
// drop, an outbox, a clock. The page is the server's; what is written here over
// it is what was said and is not saved yet.
import { Outbox, reason, signedOut, usable, type Entry } from './outbox'
import { drafts } from './drafts'
import { leftovers } from './leftovers'
import { secrets } from './secrets'
import { similar } from './similar'
import { clock } from './clock'
import { film } from './film'
import { annotates } from './annotate'
import { bell } from './bell'
import { floats } from './float'
import { pressed, released } from './press'
import { key as talkKey, voice } from './voice'

interface Said { status: string; note: string; severity: string; reason: string }

voice()
const home = document.getElementById('home')
const bench = document.getElementById('bench')
// Where the browser keeps nothing the forms are sent as they are.
void usable().then((yes) => {
  if (yes && home !== null) idle(home)
  if (yes && bench !== null) start(bench)
})

// idle is a page without a claim's list: it tells what was not saved, and the queue
// what came.
function idle(at: HTMLElement) {
  const nothing = () => {}
  const outbox = new Outbox(at.dataset.person!, '', '', { changed: nothing, state: nothing, done: nothing, refused: nothing })
  void leftovers(outbox, (e) => e.job !== at.dataset.job)
  film(at.dataset.person!)
  bell()
}

function start(bench: HTMLElement) {
  const { person, job, token } = bench.dataset as { person: string; job: string; token: string }
  const byID = (id: string) => document.getElementById(id)!
  const all = () => [...document.querySelectorAll<HTMLElement>('li[data-item]')]
  const row = (item: string) => document.querySelector<HTMLElement>(`li[data-item="${item}"]`)
  const same = (a: Said, b: Said) => a.status === b.status && a.note === b.note && a.severity === b.severity && a.reason === b.reason
  const noteOf = (li: HTMLElement) => li.querySelector<HTMLTextAreaElement>('textarea')!
  const saidOf = (li: HTMLElement): Said =>
    ({ status: li.dataset.status!, note: li.dataset.note!, severity: li.dataset.severity!, reason: li.dataset.reason! })
  const notes = drafts(bench, 'humanqa:draft:' + person + ':' + job)
  const previews = new Map<number, string>() // entry to object URL
  const undo: { item: string; said: Said }[] = []
  let current = ''
  let asking = '' // fail or skip: of the current item, what goes with it
  let frozen = false
  let questioned = document.querySelector('[data-question=open]') !== null
  let unsaved: Entry[] = []
  // What was said last of an item, until a page shows it that was asked for after it was saved.
  const verdicts = new Map<string, { said: Said; saved: number }>()

  const outbox = new Outbox(person, job, token, {
    changed: (entries) => { unsaved = entries; paint() },
    state: (state, n, why) => {
      if (state === 'waiting') tell('waits', `Waiting, ${n} not saved yet. ${why} It is kept in this browser.`)
      else tell('muted', state === 'saved' ? 'All saved' : 'Saving')
    },
    done: (entry, next) => {
      const last = verdicts.get(entry.item ?? '')
      if (last !== undefined && entry.kind === 'check' && same(last.said, entry.fields as unknown as Said)) last.saved = performance.now()
      if (['complete', 'release', 'untestable'].includes(entry.kind)) { notes.clear(); location.assign(next) } else document.dispatchEvent(new Event('humanqa:refresh'))
    },
    refused: (entry, why) => void refused(entry, why),
  })
  const list = () => leftovers(outbox, (e) => frozen || e.refused !== undefined || e.job !== job || e.token !== token, job)
  const time = clock(byID('clock'), byID('silence'))
  const reel = film(person, job, token)
  const known = similar(job, () => frozen || gone())
  const annotate = annotates(byID('annotate') as HTMLDialogElement)

  const small = floats({
    rows: all, current: () => row(current), go, press: single, complain: (text) => complain(text), over: () => frozen || gone(), keys: () => keysOn,
    settle: (li, status, note, severity) => {
      noteOf(li).value = note
      li.querySelector<HTMLSelectElement>('[name=severity]')!.value = severity
      settle(li, status)
    },
  })

  // gone: the page shows another thing by now, as after the test's end.
  const gone = () => !bench.isConnected

  function tell(how: string, text: string) {
    if (gone()) return
    const at = byID('saved')
    at.className = how
    at.textContent = text
  }

  const count = (n: number, one: string, many: string) => n === 1 ? '1 ' + one : n + ' ' + many
  const complain = (text: string) => tell('refused', text)

  // keep writes down what was said. A browser without room for it says so: nothing
  // may look saved that is not.
  function keep(entry: Parameters<Outbox['add']>[0]) {
    tell('muted', 'Saving')
    return outbox.add(entry).catch((problem: Error) => complain('This browser could not keep the text: ' + problem.message))
  }

  // A refusal may be the claim's: then nothing more can be said here.
  async function refused(entry: Entry, why: string) {
    if (entry.item !== undefined) verdicts.delete(entry.item)
    await beat()
    if (!frozen && ['complete', 'release', 'untestable'].includes(entry.kind)) {
      const stored = (await outbox.all()).find((e) => e.command === entry.command)
      if (stored !== undefined) await outbox.remove(stored)
    }
    void list()
    if (frozen) return
    document.querySelectorAll<HTMLButtonElement>('aside form button').forEach((b) => { b.disabled = false })
    complain('Refused: ' + why)
    document.dispatchEvent(new Event('humanqa:refresh'))
  }

  // The page's own address is gone: the claim's answer says why.
  document.addEventListener('humanqa:notfound', () => void beat())

  // Every minute, so that the claim stands; a hidden tab's timers run that often.
  async function beat() {
    if (frozen || gone()) return
    try {
      const answer = await fetch(`/workbench/jobs/${job}/heartbeat`, {
        method: 'POST', body: new URLSearchParams({ token, command: crypto.randomUUID() }), headers: { Accept: 'application/json' }, redirect: 'manual',
      })
      if (answer.ok) { const said = await answer.json(); time.set(said.dueAt, said.silentAt, said.now, said.stands) }
      if (answer.status === 409 || answer.status === 404) freeze(await reason(answer))
    } catch { /* it is heard of with the next one */ }
  }

  function freeze(why: string) {
    frozen = true
    outbox.stop()
    void reel.stop()
    if (gone()) return
    const at = byID('frozen')
    at.querySelector('[data-why]')!.textContent = why
    at.hidden = false
    tell('muted', '')
    byID('silence').textContent = ''
    const fields = [...bench.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('textarea, input[type=text], input:not([type])')]
    const typed = fields.filter((field) => field.value !== field.defaultValue).length
    for (const field of bench.querySelectorAll<HTMLButtonElement>('form button, form select, form input')) field.disabled = true
    for (const field of fields) { field.disabled = false; field.readOnly = true } // it can be copied
    void list().then((unsaved) => {
      const kept = [unsaved > 0 ? count(unsaved, 'unsaved entry', 'unsaved entries') : '', typed > 0 ? count(typed, 'half-typed text', 'half-typed texts') : '']
      at.querySelector('[data-kept]')!.textContent = unsaved + typed === 0 ? 'All your entries are saved.'
        : `${kept.filter(Boolean).join(' and ')} ${unsaved + typed === 1 ? 'is' : 'are'} kept below.`
    })
    small.paint()
  }

  // ---- what is shown ----

  function paint() {
    if (gone()) { small.paint(); return }
    if (pressed()) { void released().then(paint); return }
    for (const li of all()) {
      li.querySelectorAll('.sending').forEach((e) => e.remove())
      if (asking !== 'skip' || li.dataset.item !== current) li.querySelector('.ask')?.remove()
    }
    for (const entry of unsaved) overlay(entry)
    for (const [item, last] of verdicts) {
      const li = row(item)
      if (li !== null) show(li, last.said)
    }
    for (const [id, url] of previews) if (!unsaved.some((e) => e.id === id)) { URL.revokeObjectURL(url); previews.delete(id) }
    const left = all().filter((li) => li.dataset.status === 'pending').length
    byID('left').textContent = left === 0 ? 'Nothing left' : left === 1 ? '1 item left' : left + ' items left'
    for (const li of all()) li.classList.toggle('current', li.dataset.item === current)
    bench.classList.add('scripted')
    const li = row(current)
    if (li !== null) {
      if (asking === 'skip' && li.querySelector('.ask') === null) li.querySelector('.say')!.before(reasons(li))
      const save = li.querySelector<HTMLElement>('[data-save]')!
      save.textContent = asking === 'fail' ? 'Save as failed' : 'Save notes'
    }
    notes.restore()
    small.paint()
  }

  // reasons are the buttons that say why an item is skipped; their digits do the same.
  function reasons(li: HTMLElement): HTMLElement {
    const ask = document.createElement('div')
    ask.className = 'ask'
    ask.setAttribute('role', 'group')
    ask.setAttribute('aria-label', 'Reason for skipping')
    ask.append(...[...li.querySelectorAll<HTMLOptionElement>('[name=reason] option')].map((reason, n) => {
      const button = Object.assign(document.createElement('button'), { type: 'button', className: 'btn btn-quiet' })
      button.dataset.key = String(n + 1)
      button.id = `skip-${li.dataset.item}-${n + 1}`
      button.append(Object.assign(document.createElement('kbd'), { textContent: button.dataset.key }), ' ' + reason.text)
      return button
    }))
    return ask
  }

  document.addEventListener('click', (event) => {
    const key = (event.target as Element).closest<HTMLElement>('#checklist .ask [data-key]')?.dataset.key
    if (key !== undefined && !frozen && !gone()) single(key)
  })

  function overlay(entry: Entry) {
    const li = entry.item === undefined ? null : row(entry.item)
    if (entry.kind === 'check' && li !== null) show(li, entry.fields as unknown as Said)
    if (entry.kind === 'hide') document.querySelectorAll<HTMLElement>('.kept').forEach((kept) => {
      if (kept.closest('li') === li && kept.querySelector<HTMLInputElement>('[name=picture]')?.value === entry.fields.picture) kept.hidden = true
    })
    if (entry.kind === 'picture' && li !== null) {
      if (!previews.has(entry.id!)) previews.set(entry.id!, URL.createObjectURL(entry.file!))
      const kept = document.createElement('div')
      kept.className = 'kept sending'
      const img = document.createElement('img')
      img.src = previews.get(entry.id!)!
      img.alt = 'A picture that is being saved'
      kept.append(img, Object.assign(document.createElement('small'), { textContent: 'not saved yet' }))
      li.querySelector('.shots')!.append(kept)
    }
  }

  function show(li: HTMLElement, said: Said) {
    li.classList.remove('pass', 'fail', 'skip', 'pending')
    li.classList.add(said.status)
    Object.assign(li.dataset, said)
    const mark = byID('marks') as HTMLTemplateElement
    li.querySelector('.slot')!.replaceChildren(mark.content.querySelector(`[data-mark="${said.status}"]`)!.firstElementChild!.cloneNode(true))
    const note = li.querySelector<HTMLElement>('.said')!
    note.textContent = said.note
    note.hidden = said.note === ''
    const field = noteOf(li) // a page that was asked for before has emptied it
    if (field.value === field.defaultValue) field.value = field.defaultValue = said.note
    const why = li.querySelector<HTMLElement>('.why')!
    why.hidden = said.reason === ''
    why.lastElementChild!.textContent = li.querySelector<HTMLOptionElement>(`[name=reason] option[value="${said.reason}"]`)?.text ?? ''
    const severity = li.querySelector<HTMLElement>('.side .severity')!
    severity.textContent = said.severity
    severity.className = 'severity severity-' + said.severity
  }

  // ---- what is said ----

  function say(li: HTMLElement, change: Partial<Said>, undoable = true) {
    const before = saidOf(li)
    const said = { ...before, note: noteOf(li).value.trim(), ...change }
    if (said.status !== 'skip') said.reason = ''
    if (undoable) undo.push({ item: li.dataset.item!, said: before })
    const field = noteOf(li)
    field.value = field.defaultValue = said.note
    notes.forget(field)
    known.said(li.dataset.item!)
    show(li, said)
    asking = ''
    verdicts.set(li.dataset.item!, { said: { ...said }, saved: Infinity })
    const words = { pass: 'passes', fail: 'fails', skip: 'is skipped', pending: 'has a note' }[said.status]
    keep({
      kind: 'check', url: `/workbench/jobs/${job}/items/${li.dataset.item}`, item: li.dataset.item,
      fields: { ...said }, label: `${li.getAttribute('aria-label')} ${words}${said.note === '' ? '' : ': ' + said.note}`,
    })
  }

  function takeBack() {
    const last = undo.pop()
    const li = last === undefined ? null : row(last.item)
    if (last === undefined || li === null) return
    const field = noteOf(li)
    field.value = field.defaultValue = last.said.note
    li.querySelector<HTMLSelectElement>('[name=severity]')!.value = last.said.severity
    say(li, last.said, false)
    go(li)
  }

  // picture keeps what becomes of the file once somebody has looked at it.
  async function picture(li: HTMLElement, came: File) {
    const { item } = li.dataset
    const label = 'A picture of ' + li.getAttribute('aria-label')!.toLowerCase()
    try {
      const file = await annotate(came)
      if (file === null) return
      await keep({ kind: 'picture', url: `/workbench/jobs/${job}/items/${item}/pictures`, item, fields: {}, file, label })
      if (frozen) void list()
    } catch (problem) {
      complain('The picture was not kept: ' + (problem as Error).message)
    }
  }

  function go(li: HTMLElement | undefined | null) {
    if (li === undefined || li === null) return
    current = li.dataset.item!
    asking = ''
    li.focus()
    li.scrollIntoView({ block: 'nearest' })
    paint()
  }

  // advance goes to the next item without a verdict, from the current one on.
  function advance() {
    const rows = all()
    const at = rows.findIndex((li) => li.dataset.item === current)
    const open = (li: HTMLElement) => li.dataset.status === 'pending'
    go(rows.slice(at + 1).find(open) ?? rows.find(open) ?? rows[at])
  }

  function move(by: number) {
    const rows = all()
    const at = rows.findIndex((li) => li.dataset.item === current)
    go(rows[Math.min(Math.max(at + by, 0), rows.length - 1)])
  }

  function askNote(li: HTMLElement, what: string) {
    asking = what
    li.querySelector('details')!.open = true
    paint()
    noteOf(li).focus()
  }

  function settle(li: HTMLElement, status: string) {
    const severity = li.querySelector<HTMLSelectElement>('[name=severity]')!.value
    li.querySelector('details')!.open = false
    say(li, { status, severity })
    if (status === 'fail') advance()
    else go(li)
  }

  // ---- keys ----

  const keys = byID('keys')
  let keysOn = localStorage.getItem('humanqa:keys') !== 'off'
  const showKeys = () => keys.setAttribute('aria-pressed', String(keysOn))
  byID('keys-bar').hidden = false
  showKeys()
  keys.addEventListener('click', () => {
    keysOn = !keysOn
    localStorage.setItem('humanqa:keys', keysOn ? 'on' : 'off')
    showKeys()
  })
  byID('float').addEventListener('click', () => small.open())
  const help = byID('help') as HTMLDialogElement
  byID('help-open').addEventListener('click', () => help.showModal())

  document.addEventListener('keydown', (event) => {
    const target = event.target as HTMLElement
    if (frozen || gone() || event.isComposing || document.querySelector('dialog[open]') !== null) return
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); finish(target); return }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const li = target.closest<HTMLElement>('li[data-item]')
    if (target instanceof HTMLTextAreaElement && li !== null && target === noteOf(li)) { inNote(event, target, li); return }
    if (target instanceof HTMLTextAreaElement && li !== null) { if (event.key === 'Escape') { event.preventDefault(); go(li) } return }
    if (target instanceof HTMLSelectElement && target.name === 'severity' && li !== null) { inSeverity(event, target, li); return }
    if (event.key === 'Escape' && li === null) { go(row(current)); return }
    if (!keysOn || target.closest('input, textarea, select') !== null || target.closest('#checklist') === null) return
    if (single(event.key.toLowerCase())) event.preventDefault()
  })

  function inNote(event: KeyboardEvent, field: HTMLTextAreaElement, li: HTMLElement) {
    if (event.key === 'Escape') { event.preventDefault(); go(li) }
    if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); settle(li, asking === 'fail' ? 'fail' : li.dataset.status!) }
  }

  // inSeverity: behind the note of what fails, digits choose and Enter saves.
  function inSeverity(event: KeyboardEvent, field: HTMLSelectElement, li: HTMLElement) {
    if (event.key === 'Escape') { event.preventDefault(); go(li) }
    if (keysOn && field.options[Number(event.key) - 1] !== undefined) { event.preventDefault(); field.selectedIndex = Number(event.key) - 1 }
    if (event.key === 'Enter' && asking === 'fail') { event.preventDefault(); settle(li, 'fail') }
  }

  function single(key: string): boolean {
    const li = row(current)
    if (asking === 'skip' && li !== null) {
      const option = li.querySelectorAll<HTMLOptionElement>('[name=reason] option')[Number(key) - 1]
      if (option !== undefined) { say(li, { status: 'skip', reason: option.value }); advance(); return true }
      asking = ''
      paint()
      if (key === 'escape') return true
    }
    switch (key) {
      case 'j': move(1); return true
      case 'k': move(-1); return true
      case '?': help.showModal(); return true
      case 'o': document.getElementById('app')?.click(); return true
      case 'c': (document.getElementById('secrets-form') as HTMLFormElement | null)?.requestSubmit(); return true
      case 'a': byID('finding-what').focus(); return true
      case 'u': takeBack(); return true
      case 'r': record(); return true
      case 'm': mark(); return true
      case 'v': return talkKey()
      case '.': small.open(); return true
    }
    if (li === null) return false
    switch (key) {
      case 'p': say(li, { status: 'pass' }); advance(); return true
      case 'f': askNote(li, 'fail'); return true
      case '1': case '2': case '3':
        li.querySelector<HTMLSelectElement>('[name=severity]')!.selectedIndex = Number(key) - 1
        askNote(li, 'fail')
        return true
      case 's': asking = 'skip'; paint(); return true
      case 'n': askNote(li, 'note'); return true
      case 'g': void grab(li); return true
    }
    return false
  }

  // ---- the recording ----

  const filming = navigator.mediaDevices?.getDisplayMedia !== undefined && typeof MediaRecorder !== 'undefined'
  byID('film-bar').hidden = false
  for (const part of ['film', 'film-voice']) byID(part).closest<HTMLElement>('button, label')!.hidden = !filming
  byID('film').addEventListener('click', () => record())

  function record() {
    if (!filming) complain('This browser cannot record the screen here.')
    else if (reel.recording()) void reel.stop()
    else void reel.start()
  }

  function mark() {
    keep({ kind: 'mark', url: `/workbench/jobs/${job}/marks`, fields: {}, label: 'A moment was marked', pressed: Date.now() })
  }

  async function grab(li: HTMLElement) {
    try {
      const file = await reel.grab()
      if (file !== null) void picture(li, file)
    } catch (problem) {
      complain('There is no picture of the screen: ' + (problem as Error).message)
    }
  }

  // finish goes to the summary, and from there ends the test.
  function finish(target: HTMLElement) {
    const summary = byID('summary')
    if (target === summary) (byID('complete') as HTMLFormElement).requestSubmit()
    else summary.focus()
  }

  // ---- forms, pictures ----

  document.addEventListener('submit', (event) => {
    const form = event.target as HTMLFormElement
    const kind = form.dataset.outbox
    if (kind === undefined) return
    event.preventDefault()
    if (frozen) return
    const data = new FormData(form, event.submitter)
    const fields: Record<string, string> = {}
    for (const [name, value] of data) if (typeof value === 'string' && name !== 'token' && name !== 'command') fields[name] = value
    const li = form.closest<HTMLElement>('li[data-item]')
    const file = data.get('file')
    if (kind === 'check' && li !== null) {
      current = li.dataset.item!
      const opened = li.querySelector('details')!.open
      if (fields.status === 'skip') {
        asking = 'skip'
        paint()
        li.querySelector<HTMLElement>('.ask button')?.focus()
      } else if (fields.status === 'fail' && !opened) {
        askNote(li, 'fail')
      } else if (fields.status === 'fail' || asking === 'fail' && event.submitter?.dataset.save !== undefined) {
        settle(li, 'fail')
      } else {
        say(li, fields as unknown as Said)
      }
    } else if (kind === 'picture' && li !== null && file instanceof File) {
      void picture(li, file)
      form.reset()
    } else {
      if (kind === 'complete') {
        const open = all().find((one) => one.dataset.status === 'pending')
        if (open !== undefined) {
          complain(byID('left').textContent + ': give each a verdict first')
          go(open)
          return
        }
      }
      const about = form.closest('[data-finding]')?.querySelector('b')?.textContent ?? ''
      const labels: Record<string, string> = { finding: 'Found: ' + fields.description, edit: 'Found: ' + fields.description, ask: 'Asked: ' + fields.text, withdraw: 'Withdrawn: ' + about, hide: 'A picture removed', complete: 'The summary: ' + (fields.summary ?? '') }
      const entry = { kind, url: new URL(form.action).pathname, item: li?.dataset.item, fields, label: labels[kind] ?? 'Ending the test' }
      if (labels[kind] === undefined || kind === 'complete') void reel.stop().then(() => keep(entry))
      else keep(entry)
      if (kind === 'finding' || kind === 'ask') {
        form.reset() // what is chosen, too
        form.querySelectorAll<HTMLInputElement>('input:not([type=hidden]), textarea').forEach((f) => { f.value = ''; notes.forget(f) })
        if (kind === 'finding') known.clear()
        else form.closest('details')!.open = false
        go(row(current))
      } else if (kind === 'edit') {
        form.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input:not([type=hidden]), textarea').forEach((f) => { f.defaultValue = f.value; notes.forget(f) })
        form.closest('details')!.open = false
        go(row(current))
      } else if (kind === 'withdraw') go(row(current))
      else if (kind !== 'hide') form.querySelector('button')!.disabled = true
    }
  })

  document.addEventListener('change', (event) => {
    const form = (event.target as HTMLElement).closest<HTMLFormElement>('form[data-outbox=picture]')
    if (form !== null && !frozen) form.requestSubmit()
  })
  const images = (data: DataTransfer | null) => [...data?.files ?? []].filter((f) => f.type.startsWith('image/'))
  document.addEventListener('paste', (event) => {
    const li = row(current)
    const files = images(event.clipboardData)
    if (frozen || li === null || files.length === 0) return
    event.preventDefault()
    for (const file of files) void picture(li, file)
  })
  const over = (event: DragEvent) => (event.target as HTMLElement).closest?.<HTMLElement>('li[data-item]') ?? null
  document.addEventListener('dragover', (event) => {
    const li = over(event)
    all().forEach((one) => one.classList.toggle('dropping', one === li))
    if (li !== null) event.preventDefault()
  })
  document.addEventListener('drop', (event) => {
    const li = over(event)
    all().forEach((one) => one.classList.remove('dropping'))
    if (li === null || frozen) return
    event.preventDefault()
    for (const file of images(event.dataTransfer)) void picture(li, file)
  })

  // The current item shows more, and moves what is below it.
  bench.addEventListener('focusin', (event) => {
    const li = (event.target as HTMLElement).closest<HTMLElement>('li[data-item]')
    if (li === null || li.dataset.item === current) return
    current = li.dataset.item!
    asking = ''
    paint()
  })
  // Whoever is signed out goes on saying what they say; the outbox keeps it.
  document.addEventListener('humanqa:signedout', (event) => {
    if (gone()) return
    event.preventDefault()
    complain(signedOut)
  })
  // A page that was asked for before something was saved may not show it yet.
  document.addEventListener('humanqa:refreshed', (event) => {
    const asked = (event as CustomEvent<number>).detail
    for (const [item, last] of verdicts) if (last.saved < asked) verdicts.delete(item)
    paint() // before anybody can press a key
    const waits = document.querySelector('[data-question=open]') !== null
    if (waits !== questioned) { questioned = waits; void beat() } // the clock stands, or runs again
    if (!frozen) void outbox.mine().then((entries) => { unsaved = entries; paint() })
  })

  secrets(job, token)
  void outbox.mine().then((entries) => {
    unsaved = entries
    paint()
    // What was said and is not saved yet counts: where to go on is known only now.
    const first = all().find((li) => li.dataset.status === 'pending') ?? all()[0]
    if (first !== undefined && current === '') {
      current = first.dataset.item!
      if (document.activeElement === document.body && location.hash === '') first.focus()
      paint()
    }
    return outbox.drain()
  })
  void list()
  void beat()
  setInterval(() => void beat(), 60_000)
}
