// What is half typed is kept in this browser until it is sent: a reload finds it
// again.

type Field = HTMLInputElement | HTMLTextAreaElement

export function drafts(at: HTMLElement, key: string) {
  const read = (): Record<string, string> => JSON.parse(localStorage.getItem(key) ?? '{}')
  const write = (kept: Record<string, string>) => {
    if (Object.keys(kept).length === 0) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(kept))
  }
  at.addEventListener('input', (event) => {
    const field = event.target as Field
    if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement && field.type === 'text') || field.id === '') return
    const kept = read()
    if (field.value === field.defaultValue) delete kept[field.id]
    else kept[field.id] = field.value
    write(kept)
  })
  return {
    // restore puts back what nobody has typed over.
    restore() {
      for (const [id, text] of Object.entries(read())) {
        const field = document.getElementById(id) as Field | null
        if (field !== null && field !== document.activeElement && field.value === field.defaultValue) {
          field.value = text
          field.closest('details')?.setAttribute('open', '')
        }
      }
    },
    forget(field: Field) {
      const kept = read()
      delete kept[field.id]
      write(kept)
    },
    clear() { localStorage.removeItem(key) },
  }
}
