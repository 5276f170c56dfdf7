// A link to a moment of a recording plays it there, where its player is on the page.
export function players() {
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest<HTMLElement>('[data-seek]')
    const video = link === null ? null : document.getElementById(link.dataset.player!)
    if (!(video instanceof HTMLVideoElement) || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    video.currentTime = Number(link!.dataset.seek)
    video.scrollIntoView({ block: 'nearest' })
    void video.play().catch(() => {}) // it stands there
  })
}
