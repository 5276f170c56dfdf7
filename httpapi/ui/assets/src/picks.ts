// The rows of a list whose check boxes choose them: J and K go down and up, X chooses. The keys
// work while the focus is in the list, or nowhere, and the button below it ends them: they may
// be in the way of other software. Without scripts the boxes are as any others.
export function picks() {
  const list = document.querySelector<HTMLElement>('.table-pick')
  if (list === null) return
  let on = localStorage.getItem('humanqa:keys') !== 'off' // as on the workbench
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'btn btn-quiet'
  button.id = 'pick-keys'
  button.setAttribute('data-own', '')
  button.textContent = 'Keys J, K and X'
  button.title = 'J and K go down and up, X chooses a row'
  const show = () => button.setAttribute('aria-pressed', String(on))
  show()
  button.addEventListener('click', () => {
    on = !on
    localStorage.setItem('humanqa:keys', on ? 'on' : 'off')
    show()
  })
  const put = () => { if (!button.isConnected) list.closest('form')?.querySelector('footer')?.append(button) }
  put()
  document.addEventListener('humanqa:refreshed', put)

  document.addEventListener('keydown', (event) => {
    const step = { j: 1, k: -1, x: 0 }[event.key.toLowerCase()]
    const target = event.target as HTMLElement
    if (!on || step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (target !== document.body && !list.contains(target) || document.querySelector('dialog[open]') !== null) return
    const boxes = [...list.querySelectorAll<HTMLInputElement>('tbody input[type="checkbox"]')]
    const at = boxes.findIndex((box) => box.closest('tr')!.contains(target))
    if (step === 0 && at >= 0) boxes[at]!.click()
    else boxes[Math.min(Math.max(at + step, 0), boxes.length - 1)]?.focus()
    event.preventDefault()
  })
}
