// Notices of the browser, which its person has to allow.

const refused = 'This browser does not allow notifications.'

export function possible(): boolean { return typeof Notification !== 'undefined' }
export function allowed(): boolean { return possible() && Notification.permission === 'granted' }

// ask gives why it was refused; empty: it was not.
export async function ask(): Promise<string> {
  return await Notification.requestPermission() === 'granted' ? '' : refused
}

// show gives why nothing is shown; empty: it is. A press leads to the page, or to the tab
// that tells.
export function show(title: string, body: string, tag: string, href = ''): string {
  try {
    const shown = new Notification(title, { body, tag })
    shown.onclick = () => {
      window.focus()
      if (href !== '') location.assign(href)
      shown.close()
    }
    return ''
  } catch { // on phones only a worker may
    return refused
  }
}
