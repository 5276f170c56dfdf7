// The time that is left, by the server's clock: this machine's may be wrong, or be
// set while the page is open.
export function clock(at: HTMLElement) {
  const words = at.querySelector('span')!
  let due = NaN // on the clock of performance.now
  let stands = false // a question to the client is open
  const tick = () => {
    if (Number.isNaN(due)) return
    if (stands) {
      at.classList.remove('soon', 'over')
      if (words.textContent !== 'Stands until the answer') words.textContent = 'Stands until the answer'
      return
    }
    const left = Math.round((due - performance.now()) / 1000)
    at.classList.toggle('soon', left > 0 && left < 300)
    at.classList.toggle('over', left <= 0)
    const text = left <= 0 ? 'Over: it goes back to the queue' : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')} left`
    if (words.textContent !== text) words.textContent = text
  }
  setInterval(tick, 1000)
  return {
    set(dueAt: string, now: string, standsNow: boolean) {
      if (document.getElementById('lobby') !== null) return // it has not begun
      stands = standsNow
      due = performance.now() + Date.parse(dueAt) - Date.parse(now)
      tick()
    },
  }
}
