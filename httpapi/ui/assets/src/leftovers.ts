// What was said and not saved, and will not be by itself: shown so that it can be
// copied, sent under the present claim, or thrown away.
import type { Entry, Outbox } from './outbox'

export async function leftovers(outbox: Outbox, such: (entry: Entry) => boolean, job = ''): Promise<number> {
  const at = document.getElementById('leftovers')
  if (at === null) return 0
  const entries = (await outbox.all()).filter(such)
  at.hidden = entries.length === 0
  at.querySelector('[data-why]')!.textContent = entries.some((entry) => entry.refused === undefined) ? 'Your claim had ended.' : ''
  at.querySelector('ul')!.replaceChildren(...entries.map((entry) => Object.assign(document.createElement('li'), {
    className: 'keep', textContent: entry.label + (entry.refused === undefined ? '' : ' (' + entry.refused + ')'),
  })))
  const again = () => leftovers(outbox, such, job)
  const send = at.querySelector<HTMLButtonElement>('[data-send]')!
  const ours = entries.filter((entry) => entry.job === job)
  send.hidden = ours.length === 0 || !document.getElementById('frozen')?.hidden
  send.onclick = async () => {
    for (const entry of ours) await outbox.again(entry)
    await again()
  }
  at.querySelector<HTMLButtonElement>('[data-discard]')!.onclick = async () => {
    for (const entry of entries) await outbox.remove(entry)
    await again()
  }
  return entries.length
}
