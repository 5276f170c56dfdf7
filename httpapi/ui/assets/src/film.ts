// Recording the screen: a film of the test, in slices of a second. While the login
// to the tested app is shown it is black and silent, and its time goes on.
import { size } from './outbox'
import { inUse, Reels, type Sent } from './reels'

const types = ['video/webm;codecs=vp9,opus', 'video/webm;codecs=vp8,opus', 'video/webm', 'video/mp4']

// film gives what a page does with recordings. Where there is no bench it sends what
// is left of them.
export function film(person: string, job = '', token = '') {
  const reels = new Reels(person, (state) => {
    sent = { ...state, refused: state.refused || sent.refused } // until another one begins
    tell()
  })
  const at = () => document.getElementById('film-state')
  let sent: Sent = { unsent: 0, reels: 0, waits: '', refused: '' }
  let running: { id: string; recorder: MediaRecorder; stream: MediaStream; began: number; ended: Promise<void> } | null = null
  let hidden = false
  let starting = false
  let saved = false

  function tell() {
    const line = at()
    if (line === null) return
    let text = ''
    if (sent.refused !== '') text = 'The recording was not accepted. ' + sent.refused
    else if (running !== null) text = hidden ? 'Recording: black while the login is shown' : 'Recording'
    else if (sent.reels > 0) { text = 'Sending the recording'; saved = true } else if (saved) text = 'The recording is saved'
    if (sent.waits !== '' && sent.refused === '') text += `. ${sent.waits} ${size(sent.unsent)} are kept in this browser.`
    line.hidden = text === ''
    line.className = sent.refused !== '' ? 'refused' : sent.waits !== '' ? 'waits' : 'muted'
    if (line.textContent !== text) line.textContent = text
    const button = document.getElementById('film')
    if (button === null) return
    button.classList.toggle('on', running !== null)
    button.lastElementChild!.textContent = running === null ? 'Record' : 'Stop recording'
  }

  function complain(text: string) {
    const line = at()
    if (line === null) return
    line.hidden = false
    line.className = 'refused'
    line.textContent = text
  }

  async function start() {
    if (running !== null || starting) return
    starting = true
    let stream: MediaStream | undefined
    try {
      const screen = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: 10 }, audio: false })
      stream = new MediaStream(screen.getVideoTracks())
      if ((document.getElementById('film-voice') as HTMLInputElement | null)?.checked) {
        const voice = await navigator.mediaDevices.getUserMedia({ audio: true })
        for (const track of voice.getAudioTracks()) stream.addTrack(track)
      }
      await roll(stream)
    } catch (problem) {
      stream?.getTracks().forEach((t) => t.stop())
      complain((problem as Error).name === 'NotAllowedError' ? 'Nothing is recorded, because the browser was not allowed to.' : 'This browser cannot record: ' + (problem as Error).message)
    } finally {
      starting = false
    }
  }

  async function roll(stream: MediaStream) {
    const options = { mimeType: types.find((t) => MediaRecorder.isTypeSupported(t)), videoBitsPerSecond: 1_200_000, videoKeyFrameIntervalDuration: 5000 }
    const recorder = new MediaRecorder(stream, options as MediaRecorderOptions)
    const id = crypto.randomUUID()
    let over = () => {}
    const ended = new Promise<void>((done) => { over = done })
    await seen(stream)
    const began = Date.now()
    await reels.add({ id, person, job, token, began, acked: 0 })
    if (navigator.locks) void navigator.locks.request(inUse(id), () => ended)
    let end = 0
    let written = Promise.resolve()
    recorder.ondataavailable = (event) => {
      if (event.data.size === 0) return
      const from = end
      end += event.data.size
      written = written.then(() => reels.append(id, from, event.data)).catch((problem: Error) => {
        complain('This browser has no room for more of the recording: ' + problem.message)
        if (recorder.state !== 'inactive') recorder.stop()
      })
    }
    recorder.onstop = () => void written.then(() => {
      stream.getTracks().forEach((t) => t.stop())
      running = null
      over()
      tell()
      void reels.drain()
    })
    stream.getVideoTracks()[0].addEventListener('ended', () => { if (recorder.state !== 'inactive') recorder.stop() })
    running = { id, recorder, stream, began, ended }
    hide(hidden)
    sent.refused = ''
    recorder.start(1000)
    tell()
    void reels.drain()
  }

  // stop returns once everything that was recorded is written down.
  async function stop() {
    const now = running
    if (now === null) return
    if (now.recorder.state !== 'inactive') now.recorder.stop()
    await now.ended
  }

  function hide(yes: boolean) {
    hidden = yes
    running?.stream.getTracks().forEach((t) => { t.enabled = !yes })
    tell()
  }

  // grab is the screen as it is now: of what is recorded, or of what is chosen.
  async function grab(): Promise<File | null> {
    const own = running === null ? await navigator.mediaDevices.getDisplayMedia({ video: true, audio: false }) : null
    try {
      const video = document.createElement('video')
      video.muted = true
      video.srcObject = own ?? running!.stream
      await video.play()
      const canvas = document.createElement('canvas')
      canvas.width = video.videoWidth
      canvas.height = video.videoHeight
      canvas.getContext('2d')!.drawImage(video, 0, 0)
      video.srcObject = null
      const picture = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'))
      return picture === null ? null : new File([picture], 'screen.png', { type: 'image/png' })
    } finally {
      own?.getTracks().forEach((t) => t.stop())
    }
  }

  document.addEventListener('humanqa:login', (event) => hide((event as CustomEvent<boolean>).detail))
  document.addEventListener('humanqa:reel-refused', (event) => { if (running?.id === (event as CustomEvent<string>).detail) void stop() })
  setInterval(() => {
    const clock = document.getElementById('film-clock')
    if (clock === null) return
    const seconds = running === null ? -1 : Math.round((Date.now() - running.began) / 1000)
    clock.textContent = seconds < 0 ? '' : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
  }, 1000)
  void reels.drain()

  return { start, stop, grab, recording: () => running !== null }
}

// seen returns once the stream shows something: a recorder counts from its first
// frame.
async function seen(stream: MediaStream) {
  const video = document.createElement('video')
  video.muted = true
  video.srcObject = stream
  await Promise.race([video.play(), new Promise((late) => setTimeout(late, 2000))])
  video.srcObject = null
}
