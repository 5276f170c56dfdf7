import { reason } from './outbox'

// The login to the tested app comes when it is asked for, and goes by itself.
export function secrets(job: string, token: string) {
  const form = document.getElementById('secrets-form')
  const at = document.getElementById('secrets')
  if (!(form instanceof HTMLFormElement) || at === null) return
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const button = form.querySelector('button')!
    button.disabled = true
    at.hidden = false
    login(true)
    try {
      const answer = await fetch(`/workbench/jobs/${job}/secrets`, {
        method: 'POST', body: new URLSearchParams({ token, command: crypto.randomUUID() }), headers: { Accept: 'application/json' }, cache: 'no-store', redirect: 'manual',
      })
      if (!answer.ok) { at.textContent = answer.type === 'opaqueredirect' ? 'Sign in again first.' : await reason(answer); return }
      const said = await answer.json()
      const lines = document.createElement('dl')
      lines.className = 'facts'
      const answers = (said.answers ?? []).map((a: { question: string; secret: string }) => ['Answer to: ' + a.question, a.secret])
      for (const [name, text] of [['User name', said.username], ['Password', said.password], ['Notes', said.notes], ['Access', said.accessInstructions], ...answers]) {
        if (text) lines.append(
          Object.assign(document.createElement('dt'), { textContent: name }),
          Object.assign(document.createElement('dd'), { textContent: text, className: 'keep' }))
      }
      at.replaceChildren(lines)
      await new Promise((over) => setTimeout(over, said.seconds * 1000))
      at.replaceChildren()
      at.hidden = true
      await painted()
    } catch {
      at.textContent = 'The service does not answer.'
    } finally {
      button.disabled = false
      login(false)
    }
  })
}

// login says that it is on the screen, or is not any more: nobody records it.
function login(shown: boolean) { document.dispatchEvent(new CustomEvent('humanqa:login', { detail: shown })) }

// painted returns once the screen shows what the page is now.
const painted = () => new Promise((done) => setTimeout(done, 500))
