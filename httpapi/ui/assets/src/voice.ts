// The voice chat of a session: one connection, to the service, which makes every
// offer. The page is the server's; the card with data-voice is this script's.

interface Person { id: string; label: string; watches: boolean; speaks: boolean }

interface Message {
  type: string
  sdp?: string
  mic?: string
  you?: string
  peer?: string
  peers?: Person[]
  speaking?: string[] | null
  why?: string
}

// How long to wait before another try, in ms; the last one repeats.
const pauses = [500, 1000, 2000, 5000, 10_000]

const lastWords: Record<string, string> = {
  over: 'The session has ended, or you are no longer part of it.',
  replaced: 'You are in the voice chat in another tab.',
  full: 'The voice chat is full.',
}

// key is the keyboard's way to join, and then to mute and unmute. It is false where the
// page has no voice.
export function key(): boolean {
  const button = document.querySelector<HTMLElement>('[data-voice] :is([data-join], [data-mute]):not([hidden])')
  button?.click()
  return button !== null
}

export function voice() {
  let talk: Talk | undefined
  const look = () => {
    const card = document.querySelector<HTMLElement>('[data-voice]')
    if (talk !== undefined && talk.card !== card) { talk.leave(); talk = undefined }
    if (card !== null && talk === undefined && card.querySelector('[data-join]') !== null) talk = new Talk(card)
  }
  look()
  document.addEventListener('humanqa:refreshed', look)
}

class Talk {
  private readonly watches: boolean
  private readonly memory: string // that this tab is in it, over the pages of a session
  private wanted = false
  private tries = 0
  private socket: WebSocket | undefined
  private pc: RTCPeerConnection | undefined
  private mic: MediaStreamTrack | undefined
  private uplink = '' // the media line of the microphone
  private people: Person[] = []
  private you = ''
  private speaking: string[] = []
  private over = false // nobody can join any more
  private silent = false // the browser plays nothing until somebody presses a button

  constructor(readonly card: HTMLElement) {
    this.watches = card.dataset.watches !== undefined
    this.memory = 'humanqa:voice:' + card.dataset.voice
    this.on('[data-join]', () => void this.join())
    this.on('[data-mute]', () => void this.mute())
    this.on('[data-leave]', () => { this.leave(); this.say('You have left the voice chat.') })
    card.addEventListener('click', (event) => {
      const button = (event.target as Element).closest<HTMLElement>('[data-let]')
      if (button !== null) this.send({ type: button.dataset.let!, peer: button.dataset.peer! })
    })
    this.paint()
    if (!this.watches && sessionStorage.getItem(this.memory) !== null) void this.join()
  }

  private at<E extends HTMLElement>(selector: string): E { return this.card.querySelector<E>(selector)! }
  private on(selector: string, act: () => void) { this.at(selector).addEventListener('click', act) }
  private say(text: string) { this.at('[data-say]').textContent = text }
  private me(): Person | undefined { return this.people.find((p) => p.id === this.you) }

  async join() {
    if (this.wanted) { // it is there, but silent
      this.silent = false
      for (const audio of this.card.querySelectorAll('audio')) void audio.play()
      return this.paint()
    }
    if (navigator.mediaDevices === undefined || typeof RTCPeerConnection === 'undefined') {
      return this.say('This browser allows no microphone on a page without HTTPS. The test continues without voice.')
    }
    if (!this.watches && !await this.open()) return
    this.wanted = true
    sessionStorage.setItem(this.memory, '1')
    this.say('Connecting')
    this.connect()
  }

  // open asks for the microphone.
  private async open(): Promise<boolean> {
    if (this.mic?.readyState === 'live') return true
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true } })
      this.mic = stream.getAudioTracks()[0]
      return true
    } catch (problem) {
      const denied = (problem as DOMException).name === 'NotAllowedError'
      this.say((denied ? 'The browser was not allowed to use the microphone.' : 'No usable microphone was found.') + ' The test continues without voice.')
      return false
    }
  }

  leave() {
    this.wanted = false
    sessionStorage.removeItem(this.memory)
    this.hangUp()
    this.mic?.stop()
    this.mic = undefined
    this.paint()
  }

  private hangUp() {
    const { socket, pc } = this
    this.socket = this.pc = undefined
    this.people = []
    this.speaking = []
    this.uplink = ''
    socket?.close()
    pc?.close()
    for (const audio of this.card.querySelectorAll('audio')) audio.remove()
  }

  private connect() {
    const url = new URL(this.card.dataset.voice!, location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    const socket = new WebSocket(url)
    this.socket = socket
    let chain = Promise.resolve()
    socket.onmessage = (event) => {
      chain = chain.then(async () => { if (this.socket === socket) await this.heard(JSON.parse(event.data)) }).catch(() => socket.close())
    }
    socket.onclose = () => { // after what was said before
      void chain.then(() => { if (this.socket === socket) this.again() })
    }
  }

  // again tries once more, later each time.
  private again() {
    this.hangUp()
    this.paint()
    if (!this.wanted) return
    this.say(this.tries > 2 ? 'The voice chat has no connection right now. The test continues without it, and the page keeps trying.' : 'Connecting again')
    setTimeout(() => { if (this.wanted && this.socket === undefined) this.connect() }, pauses[Math.min(this.tries++, pauses.length - 1)])
  }

  private send(m: Message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(m))
  }

  private async heard(m: Message) {
    if (m.type === 'peers') {
      this.people = m.peers ?? []
      this.you = m.you ?? ''
      this.paint()
      if (this.people.length === 1 && this.pc === undefined) this.say('You are the first in the voice chat.')
    }
    if (m.type === 'speaking') { this.speaking = m.speaking ?? []; this.paint() }
    if (m.type === 'offer') await this.offered(m)
    if (m.type === 'end') {
      if (m.why === 'again') return this.again()
      this.over = m.why === 'over'
      this.leave()
      this.say(lastWords[m.why ?? ''] ?? 'The voice chat has ended.')
    }
  }

  private async offered(m: Message) {
    const pc = this.pc ?? this.call()
    await pc.setRemoteDescription({ type: 'offer', sdp: m.sdp! })
    if (m.mic !== undefined && m.mic !== '' && this.uplink === '') {
      const line = pc.getTransceivers().find((t) => t.mid === m.mic)
      if (line !== undefined) {
        this.uplink = m.mic
        line.direction = 'sendonly'
        if (this.mic !== undefined) await line.sender.replaceTrack(this.mic)
      }
    }
    await pc.setLocalDescription(await pc.createAnswer())
    this.send({ type: 'answer', sdp: pc.localDescription!.sdp })
  }

  private call(): RTCPeerConnection {
    const pc = new RTCPeerConnection({ bundlePolicy: 'max-bundle' })
    this.pc = pc
    pc.ontrack = (event) => this.play(event.streams[0])
    pc.onconnectionstatechange = () => {
      if (this.pc !== pc) return
      if (pc.connectionState === 'connected') { this.tries = 0; this.say('You are in the voice chat.'); this.paint() }
      if (pc.connectionState === 'failed') this.socket?.close()
    }
    return pc
  }

  // play lets somebody be heard. A stream's id is its speaker's.
  private play(stream: MediaStream) {
    const audio = document.createElement('audio')
    audio.autoplay = true
    audio.srcObject = stream
    audio.dataset.of = stream.id
    this.card.append(audio)
    audio.play().catch(() => { this.silent = true; this.paint() })
    stream.onremovetrack = () => audio.remove()
  }

  // mute turns the microphone off, and on; who was let speak opens it so.
  private async mute() {
    if (this.mic === undefined) {
      if (!await this.open()) return
      const line = this.pc?.getTransceivers().find((t) => t.mid === this.uplink)
      await line?.sender.replaceTrack(this.mic!)
    } else {
      this.mic.enabled = !this.mic.enabled
    }
    this.paint()
  }

  private paint() {
    const inside = this.wanted && this.people.length > 0
    const join = this.at('[data-join]'), mute = this.at('[data-mute]'), leave = this.at('[data-leave]')
    join.hidden = this.over || this.wanted && !this.silent
    if (this.wanted) join.textContent = 'Turn the sound on'
    else join.textContent = this.watches ? 'Listen' : 'Join the voice chat'
    leave.hidden = !this.wanted
    mute.hidden = !inside || this.me()?.speaks !== true
    const off = this.mic !== undefined && !this.mic.enabled
    mute.setAttribute('aria-pressed', String(off))
    mute.textContent = this.mic === undefined ? 'Speak (you were invited)' : off ? 'Muted' : 'Mute'
    if (this.watches && inside && this.me()?.speaks !== true) { this.mic?.stop(); this.mic = undefined }
    // Oneself first, then everyone who speaks: on a narrow screen the rest is further on.
    const rank = (p: Person) => p.id === this.you ? 0 : p.speaks ? 1 : 2
    const rows = inside ? [...this.people].sort((a, b) => rank(a) - rank(b)) : []
    const list = this.at('[data-voices]')
    while (list.children.length > rows.length) list.lastElementChild!.remove()
    rows.forEach((p, n) => {
      let row = list.children[n] as HTMLElement | undefined
      if (row?.dataset.peer !== p.id) {
        const fresh = document.createElement('li')
        fresh.dataset.peer = p.id
        fresh.append(document.createElement('span'), document.createElement('small'))
        if (row === undefined) list.append(fresh)
        else row.replaceWith(fresh)
        row = fresh
      }
      const [name, how] = row.children as unknown as [HTMLElement, HTMLElement]
      const now = this.speaking.includes(p.id)
      name.className = p.speaks ? 'speaks' + (now ? ' now' : '') : ''
      name.textContent = p.id === this.you ? `You (${p.label})` : p.label
      how.textContent = !p.speaks ? 'listens' : now ? 'speaks' : ''
      this.offerToLet(row, p)
    })
  }

  // Who takes part lets those who watch speak.
  private offerToLet(row: HTMLElement, p: Person) {
    let button = row.querySelector<HTMLButtonElement>('[data-let]')
    if (this.watches || !p.watches) { button?.remove(); return }
    if (button === null) {
      button = document.createElement('button')
      button.type = 'button'
      button.className = 'btn btn-quiet'
      button.dataset.peer = p.id
      row.append(button)
    }
    button.dataset.let = p.speaks ? 'dismiss' : 'invite'
    button.textContent = p.speaks ? 'No longer' : 'Let them speak'
  }
}
