// The time that is left, and the time until the silence ends the claim, by the server's
// clock: this machine's may be wrong, or be set while the page is open.
export function clock(at: HTMLElement, silence: HTMLElement) {
  const words = at.querySelector('span')!
  let due = NaN // both on the clock of performance.now
  let silent = NaN
  let heard = NaN
  let stands = false // a question to the client is open
  const tick = () => {
    const seconds = (until: number) => Math.round((until - performance.now()) / 1000)
    const time = (left: number) => `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
    if (!Number.isNaN(silent)) {
      const left = seconds(silent)
      const lost = performance.now() - heard > missed
      silence.classList.toggle('waits', lost)
      write(silence, stands && !lost ? 'In contact' : left <= 0 ? 'No contact' : lost ? `No contact, ${time(left)} to reconnect` : `In contact, ${time(left)}`)
    }
    if (Number.isNaN(due)) return
    if (stands) {
      at.classList.remove('soon', 'over')
      write(words, 'Paused until the answer')
      return
    }
    const left = seconds(due)
    at.classList.toggle('soon', left > 0 && left < 300)
    at.classList.toggle('over', left <= 0)
    write(words, left <= 0 ? 'Time is over. The test returns to the queue' : time(left) + ' left')
  }
  setInterval(tick, 1000)
  return {
    set(dueAt: string, silentAt: string, now: string, standsNow: boolean) {
      heard = performance.now()
      silent = heard + Date.parse(silentAt) - Date.parse(now)
      stands = standsNow
      // A slot's time runs from the start of its session.
      if (document.getElementById('lobby') === null) due = heard + Date.parse(dueAt) - Date.parse(now)
      tick()
    },
  }
}

// missed is how many ms after a heartbeat the next one is late.
const missed = 90_000

function write(at: HTMLElement, text: string) { if (at.textContent !== text) at.textContent = text }
