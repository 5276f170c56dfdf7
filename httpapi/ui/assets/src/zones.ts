// Times are shown in the zone of their reader, with its name. Their titles stay UTC, as
// everything is without a script.

const parts: Record<string, Intl.DateTimeFormatOptions> = {
  moment: { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' },
  day: { day: 'numeric', month: 'short', year: 'numeric' },
  clock: { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' },
}
const formats = new Map(Object.entries(parts).map(([name, options]) => [name, new Intl.DateTimeFormat('en-GB', options)]))

export function zones() {
  const show = () => {
    for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-zone]')) {
      const text = formats.get(time.dataset.zone!)?.format(new Date(time.dateTime))
      if (text !== undefined && time.textContent !== text) time.textContent = text
    }
  }
  show()
  document.addEventListener('humanqa:refreshed', show) // the page came anew, in UTC
}
