// A picture before it is kept: arrows and boxes drawn on it, parts of it made
// unreadable. What is kept is the canvas. Where something was drawn, the picture
// that came never leaves this browser.

type Tool = 'arrow' | 'box' | 'blur'
interface Point { x: number; y: number }
interface Mark { tool: Tool; from: Point; to: Point }
type Context = CanvasRenderingContext2D

const tools: Tool[] = ['arrow', 'box', 'blur']
const largest = 10 << 20 // bytes of a picture that the service takes
const area = 48 << 20 // pixels that a canvas is sure to take
const longest = 16_000

// annotates gives what shows a picture, and returns it as it is to be kept; null:
// not at all. Several come one after the other.
export function annotates(dialog: HTMLDialogElement) {
  const canvas = dialog.querySelector('canvas')!
  const on = canvas.getContext('2d', { willReadFrequently: true })!
  const told = dialog.querySelector<HTMLElement>('[role=status]')!
  const button = (name: string) => dialog.querySelector<HTMLButtonElement>(`[data-do=${name}]`)!
  const base = document.createElement('canvas') // with all that was drawn
  const under = base.getContext('2d', { willReadFrequently: true })!
  let picture: ImageBitmap
  let marks: Mark[] = []
  let tool: Tool = 'arrow'
  let from: Point | null = null // of the mark that is being drawn
  let at: Point = { x: 0, y: 0 }
  let keyed = false // by keys: the place has to be seen
  let kept = false
  let line = Promise.resolve()

  function choose(next: Tool) {
    tool = next
    for (const one of tools) button(one).setAttribute('aria-pressed', String(one === tool))
  }

  function paint() {
    on.clearRect(0, 0, canvas.width, canvas.height)
    on.drawImage(base, 0, 0)
    if (from !== null) draw(on, { tool, from, to: at }, true)
    if (!keyed || document.activeElement !== canvas) return
    const arm = thick(canvas) * 5
    stroke(on, thick(canvas) / 2, (path) => {
      path.moveTo(at.x - arm, at.y); path.lineTo(at.x + arm, at.y)
      path.moveTo(at.x, at.y - arm); path.lineTo(at.x, at.y + arm)
    })
  }

  // again draws everything anew: what was taken back shows what was under it.
  function again() {
    under.clearRect(0, 0, base.width, base.height)
    under.drawImage(picture, 0, 0, base.width, base.height)
    for (const mark of marks) draw(under, mark, false)
    button('undo').disabled = marks.length === 0
    paint()
  }

  function finish() {
    const mark = { tool, from: from!, to: at }
    from = null
    const least = thick(canvas)
    const wide = Math.abs(mark.to.x - mark.from.x)
    const high = Math.abs(mark.to.y - mark.from.y)
    if (tool === 'arrow' ? wide + high < 2 * least : wide < least || high < least) { paint(); return }
    marks.push(mark)
    again()
    told.textContent = { arrow: 'An arrow is drawn.', box: 'A box is drawn.', blur: 'This part is unreadable now.' }[tool]
  }

  function undo() {
    if (marks.pop() === undefined) return
    again()
    told.textContent = 'The last mark is removed.'
    if (marks.length === 0) canvas.focus() // the button is off by now
  }

  async function show(file: File): Promise<File | null> {
    try {
      picture = await createImageBitmap(file)
    } catch {
      return file // no picture: the service says so
    }
    const scale = Math.min(1, longest / Math.max(picture.width, picture.height), Math.sqrt(area / (picture.width * picture.height)))
    for (const one of [canvas, base]) {
      one.width = Math.max(1, Math.round(picture.width * scale))
      one.height = Math.max(1, Math.round(picture.height * scale))
    }
    at = { x: Math.round(canvas.width / 2), y: Math.round(canvas.height / 2) }
    marks = []
    from = null
    kept = keyed = false
    told.textContent = ''
    choose('arrow')
    again()
    const closed = new Promise((done) => dialog.addEventListener('close', done, { once: true }))
    dialog.showModal()
    button('keep').focus()
    await closed
    picture.close()
    if (!kept) return null
    return marks.length === 0 ? file : await drawn(base, file)
  }

  const place = (event: PointerEvent): Point => {
    const box = canvas.getBoundingClientRect()
    const within = (n: number, most: number) => Math.min(Math.max(Math.round(n), 0), most)
    return {
      x: within((event.clientX - box.left) * canvas.width / box.width, canvas.width),
      y: within((event.clientY - box.top) * canvas.height / box.height, canvas.height),
    }
  }
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return
    canvas.setPointerCapture(event.pointerId)
    keyed = false
    from = at = place(event)
    paint()
  })
  canvas.addEventListener('pointermove', (event) => {
    if (from === null || keyed) return
    at = place(event)
    paint()
  })
  canvas.addEventListener('pointerup', (event) => {
    if (from === null || keyed) return
    at = place(event)
    finish()
  })
  canvas.addEventListener('pointercancel', () => { from = null; paint() })
  canvas.addEventListener('blur', () => { if (keyed) { from = null; paint() } })
  canvas.addEventListener('focus', () => paint())

  for (const one of tools) button(one).addEventListener('click', () => choose(one))
  button('undo').addEventListener('click', undo)
  button('keep').addEventListener('click', () => { kept = true; dialog.close() })
  button('drop').addEventListener('click', () => dialog.close())

  const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }
  dialog.addEventListener('keydown', (event) => {
    event.stopPropagation() // the page's own keys are for the list
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { button('keep').click(); event.preventDefault(); return }
    if (event.key.toLowerCase() === 'z' && (event.ctrlKey || event.metaKey)) { undo(); event.preventDefault(); return }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key.toLowerCase() === 'u') { undo(); event.preventDefault(); return }
    const chosen = tools[Number(event.key) - 1]
    if (chosen !== undefined) { choose(chosen); canvas.focus(); event.preventDefault(); return }
    if (event.target === canvas && drawing(event)) event.preventDefault()
  })

  function drawing(event: KeyboardEvent): boolean {
    const way = arrows[event.key]
    if (way !== undefined) {
      keyed = true
      const step = event.shiftKey ? 1 : Math.max(canvas.width, canvas.height) / 50
      at = {
        x: Math.min(Math.max(Math.round(at.x + way[0] * step), 0), canvas.width),
        y: Math.min(Math.max(Math.round(at.y + way[1] * step), 0), canvas.height),
      }
      told.textContent = `${Math.round(100 * at.x / canvas.width)} % from the left, ${Math.round(100 * at.y / canvas.height)} % from the top`
    } else if (event.key === 'Enter' || event.key === ' ') {
      keyed = true
      if (from === null) { from = at; told.textContent = 'The mark begins here.' } else finish()
    } else if (event.key === 'Escape' && from !== null) {
      from = null
    } else return false
    paint()
    return true
  }

  return (file: File): Promise<File | null> => {
    const shown = line.then(() => show(file))
    line = shown.then(() => {}, () => {})
    return shown
  }
}

// thick is the width of a line that is seen well, in pixels of the picture.
function thick(canvas: HTMLCanvasElement) { return Math.max(3, Math.round(Math.max(canvas.width, canvas.height) / 320)) }

function draw(on: Context, mark: Mark, sketch: boolean) {
  const { from, to, tool } = mark
  const wide = thick(on.canvas)
  const [x, y] = [Math.min(from.x, to.x), Math.min(from.y, to.y)]
  const [w, h] = [Math.abs(to.x - from.x), Math.abs(to.y - from.y)]
  if (tool === 'arrow') {
    const angle = Math.atan2(to.y - from.y, to.x - from.x)
    const head = wide * 5
    stroke(on, wide, (path) => {
      path.moveTo(from.x, from.y); path.lineTo(to.x, to.y)
      for (const side of [-0.5, 0.5]) { path.moveTo(to.x, to.y); path.lineTo(to.x - head * Math.cos(angle + side), to.y - head * Math.sin(angle + side)) }
    })
  } else if (tool === 'box' || sketch) stroke(on, sketch && tool === 'blur' ? wide / 2 : wide, (path) => path.rect(x, y, w, h))
  else destroy(on, x, y, w, h)
}

// stroke draws in red, with a white edge: seen on any ground.
function stroke(on: Context, wide: number, lines: (path: Path2D) => void) {
  const path = new Path2D()
  lines(path)
  on.lineCap = on.lineJoin = 'round'
  for (const [colour, width] of [['#ffffff', wide * 2], ['#d3281e', wide]] as const) {
    on.strokeStyle = colour
    on.lineWidth = width
    on.stroke(path)
  }
}

// destroy leaves nothing to read: a few colours at most, each the rough average of
// many letters, so that no guess of what stood there can be tried out either.
function destroy(on: Context, x: number, y: number, w: number, h: number) {
  const { data } = on.getImageData(x, y, w, h)
  const columns = Math.min(4, Math.max(1, Math.floor(w / 48)))
  const rows = Math.min(4, Math.max(1, Math.floor(h / 48)))
  const sums = Array.from({ length: columns * rows }, () => [0, 0, 0, 0])
  for (let j = 0; j < h; j++) {
    for (let i = 0; i < w; i++) {
      const sum = sums[Math.floor(j * rows / h) * columns + Math.floor(i * columns / w)]
      for (let k = 0; k < 3; k++) sum[k] += data[4 * (j * w + i) + k]
      sum[3]++
    }
  }
  const few = document.createElement('canvas')
  few.width = columns
  few.height = rows
  const cells = new ImageData(columns, rows)
  sums.forEach((sum, n) => cells.data.set([...sum.slice(0, 3).map((all) => Math.round(all / sum[3] / 24) * 24), 255], 4 * n))
  few.getContext('2d')!.putImageData(cells, 0, 0)
  on.fillStyle = '#808080' // in case something shines through at the edges
  on.fillRect(x, y, w, h)
  on.imageSmoothingEnabled = true
  on.drawImage(few, x, y, w, h)
}

// drawn is the canvas as a file: of the kind that came, unless that becomes too large.
async function drawn(canvas: HTMLCanvasElement, was: File): Promise<File> {
  const name = was.name.replace(/\.[^.]*$/, '') || 'picture'
  const as = (type: string) => new Promise<Blob | null>((done) => canvas.toBlob(done, type, 0.92))
  let blob = await as(was.type === 'image/jpeg' ? 'image/jpeg' : 'image/png')
  if (blob !== null && blob.size > largest) blob = await as('image/jpeg')
  if (blob === null) throw new Error('this browser cannot draw a picture of this size')
  return new File([blob], name + (blob.type === 'image/jpeg' ? '.jpg' : '.png'), { type: blob.type })
}
