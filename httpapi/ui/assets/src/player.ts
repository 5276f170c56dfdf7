// A link to a moment of a recording plays it there, where its player is on the page. The
// strip under the player leads anywhere, and shows where it is.
export function players() {
  const player = (id: string | undefined) => {
    const video = document.getElementById(id ?? '')
    return video instanceof HTMLVideoElement ? video : null
  }
  const play = (video: HTMLVideoElement, at: number) => {
    video.currentTime = at
    video.scrollIntoView({ block: 'nearest' })
    void video.play().catch(() => {}) // it stands there
  }
  document.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    const target = event.target as Element
    const link = target.closest<HTMLElement | SVGElement>('[data-seek]')
    const strip = target.closest<SVGElement>('[data-strip]')
    const video = player(link?.dataset.player ?? strip?.dataset.strip)
    if (video === null) return
    if (link !== null) {
      event.preventDefault()
      play(video, Number(link.dataset.seek))
    } else if (Number.isFinite(video.duration)) {
      const box = strip!.getBoundingClientRect()
      play(video, video.duration * (event.clientX - box.left) / box.width)
    }
  })
  const moved = (event: Event) => {
    const video = event.target as HTMLVideoElement
    const now = document.querySelector(`[data-strip="${CSS.escape(video.id)}"] .now`)
    if (now === null || !Number.isFinite(video.duration)) return
    now.removeAttribute('hidden')
    now.setAttribute('x', String(Math.min(99.75, 100 * video.currentTime / video.duration)))
    const links = [...document.querySelectorAll<HTMLElement>(`.marks [data-player="${CSS.escape(video.id)}"]:first-child`)]
    const last = links.filter((link) => Number(link.dataset.seek) <= video.currentTime + 0.05).at(-1)
    for (const link of links) link.toggleAttribute('data-now', link === last)
  }
  for (const kind of ['timeupdate', 'seeked']) document.addEventListener(kind, moved, true)
}
