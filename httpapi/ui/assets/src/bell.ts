// Something urgent came to the queue: the browser says so and a sound is heard, if
// whoever sits here wants that. Both are off until a button is pressed, and stay as
// this browser was told. How much urgent waits the page's title says anyway.
import { allowed, ask, possible, show } from './notice'

interface Came { id: string; title: string }

const rungAt = 'humanqa:rung' // the ids that rang last in any tab of this browser
const remembered = 50

export function bell() {
  const at = document.getElementById('bell')
  if (at === null) return
  const told = at.querySelector<HTMLElement>('[role=status]')!
  const button = (name: string) => at.querySelector<HTMLButtonElement>(`[data-bell=${name}]`)!
  const wanted = (name: string) => localStorage.getItem('humanqa:bell:' + name) === 'on'
  const urgent = (): Came[] => [...document.querySelectorAll<HTMLElement>('[data-urgent]')]
    .map((row) => ({ id: row.dataset.urgent!, title: row.querySelector('.title')!.textContent! }))
  const seen = new Set(urgent().map((one) => one.id))
  let audio: AudioContext | null = null

  function set(name: string, on: boolean, why = '') {
    if (on) localStorage.setItem('humanqa:bell:' + name, 'on')
    else localStorage.removeItem('humanqa:bell:' + name)
    draw()
    told.textContent = why
  }

  function draw() {
    for (const name of ['notice', 'sound']) button(name).setAttribute('aria-pressed', String(wanted(name)))
  }

  async function notices() {
    if (wanted('notice')) { set('notice', false); return }
    const refused = await ask()
    set('notice', refused === '', refused)
  }

  // awake is the sound, once the browser lets it be heard: after a press of anything.
  async function awake(): Promise<AudioContext> {
    audio ??= new AudioContext()
    if (audio.state !== 'running') await Promise.race([audio.resume(), new Promise((late) => setTimeout(late, 500))])
    told.textContent = audio.state === 'running' ? '' : 'The browser plays no sound before you click on this page.'
    return audio
  }

  async function beep() {
    const { currentTime: now, destination } = await awake()
    for (const [after, pitch] of [[0, 880], [0.18, 1175]]) {
      const tone = audio!.createOscillator()
      const volume = audio!.createGain()
      tone.frequency.value = pitch
      volume.gain.setValueAtTime(0.15, now + after)
      volume.gain.exponentialRampToValueAtTime(0.001, now + after + 0.3)
      tone.connect(volume).connect(destination)
      tone.start(now + after)
      tone.stop(now + after + 0.3)
    }
  }

  function notice(came: Came) {
    const refused = show('Urgent: ' + came.title, 'It waits in the queue.', came.id)
    if (refused !== '') set('notice', false, refused)
  }

  // ours are those that no other tab rang for.
  async function ours(came: Came[]): Promise<Came[]> {
    const take = () => {
      const rung: string[] = JSON.parse(localStorage.getItem(rungAt) ?? '[]')
      const left = came.filter((one) => !rung.includes(one.id))
      localStorage.setItem(rungAt, JSON.stringify([...rung, ...left.map((one) => one.id)].slice(-remembered)))
      return left
    }
    return navigator.locks ? await navigator.locks.request('humanqa-bell', take) : take()
  }

  document.addEventListener('humanqa:refreshed', async () => {
    const came = urgent().filter((one) => !seen.has(one.id))
    for (const one of came) seen.add(one.id)
    if (came.length === 0 || !wanted('notice') && !wanted('sound')) return
    const left = await ours(came)
    if (left.length === 0) return
    if (wanted('sound')) void beep()
    if (wanted('notice')) for (const one of left) notice(one)
  })

  button('notice').hidden = !possible()
  button('notice').addEventListener('click', () => void notices())
  button('sound').addEventListener('click', () => {
    set('sound', !wanted('sound'))
    if (wanted('sound')) void beep()
  })
  // What the browser was told to forget it says no more.
  if (wanted('notice') && !allowed()) set('notice', false)
  draw()
  at.hidden = false
  if (wanted('sound')) {
    void awake()
    for (const press of ['pointerdown', 'keydown']) document.addEventListener(press, () => void awake(), { once: true })
  }
}
