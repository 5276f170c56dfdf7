// A form with data-passkey is shown where passkeys work. Submitting it asks the
// server for a challenge, the browser for an answer, and goes where the server
// says, or sends itself there.

export function passkeys() {
  if (!('PublicKeyCredential' in window)) return
  for (const form of document.querySelectorAll<HTMLFormElement>('form[data-passkey]')) {
    form.hidden = false
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      void run(form)
    })
  }
}

async function run(form: HTMLFormElement) {
  const note = form.querySelector<HTMLElement>('[data-note]')
  const say = (text: string) => { if (note !== null) note.textContent = text }
  const button = form.querySelector('button')
  if (button !== null) button.disabled = true
  say('')
  try {
    const fields = new URLSearchParams(new FormData(form) as unknown as Record<string, string>)
    const asked = await post(form.action + '/ask', fields)
    const answer = form.dataset.passkey === 'new'
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked.options.publicKey ?? asked.options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked.options.publicKey ?? asked.options) })
    if (answer === null) throw new Error('The browser gave no passkey.')
    fields.set('challenge', asked.challenge)
    fields.set('answer', JSON.stringify((answer as PublicKeyCredential).toJSON()))
    const done = await post(form.action, fields)
    if (done.post === undefined) location.assign(done.next)
    else { // a form that waited is carried out; the browser shows the answer
      form.action = done.post
      form.submit()
    }
  } catch (problem) {
    const name = (problem as Error).name
    say(name === 'InvalidStateError' ? 'This device already has a passkey for you.' : name === 'NotAllowedError' || name === 'AbortError' ? 'The passkey was not used. Try again, or choose another way.' : (problem as Error).message)
    if (button !== null) button.disabled = false
  }
}

async function post(url: string, fields: URLSearchParams): Promise<any> {
  const answer = await fetch(url, { method: 'POST', body: fields, headers: { Accept: 'application/json' } })
  const said = await answer.json()
  if (!answer.ok) throw new Error([said.error, said.hint].filter(Boolean).join(' '))
  return said
}
