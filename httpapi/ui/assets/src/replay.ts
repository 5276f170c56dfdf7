// All recordings of a session at the same moment. Time is the session's: a film
// with data-from began so many seconds after it.

// How far a film may be off before it is set right, in seconds.
const slack = 0.3

export function replay() {
  let at = 0
  let playing = false
  let last = 0
  const bar = () => document.getElementById('replay')
  const films = () => [...document.querySelectorAll<HTMLVideoElement>('video[data-from]')]
  const into = (film: HTMLVideoElement) => at - Number(film.dataset.from)
  const shows = (film: HTMLVideoElement) => into(film) >= 0 && !(into(film) >= film.duration)
  // A film that has not begun stands at its start, one that is over at its end.
  const inside = (film: HTMLVideoElement) => Math.min(Math.max(0, into(film)), Number.isFinite(film.duration) ? film.duration : Infinity)
  const lead = (film: HTMLVideoElement) => { film.currentTime = inside(film) }
  const end = () => Number(bar()?.dataset.seconds ?? 0)

  function show() {
    const here = bar()
    if (here === null) return
    here.hidden = false
    here.querySelector('button')!.textContent = playing ? 'Pause all' : 'Play all'
    here.querySelector('input')!.value = String(at)
    const whole = Math.floor(at)
    here.querySelector('output')!.textContent = `${String(Math.floor(whole / 60)).padStart(2, '0')}:${String(whole % 60).padStart(2, '0')}`
  }

  function seek(to: number) {
    at = Math.max(0, Math.min(end(), to))
    for (const film of films()) {
      lead(film)
      if (!shows(film) || !playing) film.pause()
    }
    show()
  }

  function step() {
    const now = performance.now()
    if (playing) at = Math.min(end(), at + (now - last) / 1000)
    last = now
    if (!playing) return
    for (const film of films()) {
      if (Math.abs(film.currentTime - inside(film)) > slack) lead(film)
      if (!shows(film)) film.pause()
      else if (film.paused) void film.play().catch(() => {}) // it stands there
    }
    if (at >= end()) stop()
    show()
  }

  function stop() {
    playing = false
    for (const film of films()) film.pause()
  }

  document.addEventListener('click', (event) => {
    const target = event.target as Element
    const moment = target.closest<HTMLElement>('[data-into]')
    if (moment !== null && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault()
      seek(Number(moment.dataset.into))
      document.querySelector('.films')?.scrollIntoView({ block: 'nearest' })
    }
    if (target.closest('#replay button') !== null) {
      if (playing) stop()
      else { playing = true; last = performance.now(); if (at >= end()) at = 0 }
      seek(at)
    }
  })
  document.addEventListener('input', (event) => {
    const slider = event.target as HTMLInputElement
    if (slider.closest('#replay') !== null) seek(Number(slider.value))
  })
  setInterval(step, 200)
  show()
  document.addEventListener('humanqa:refreshed', show)
}
