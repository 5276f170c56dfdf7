// A click goes to what is under the pointer both when its button goes down and when it
// comes up. So what would move meanwhile waits for the release.
let down = false
const waiting: (() => void)[] = []

addEventListener('pointerdown', (event) => { if (event.button === 0) down = true }, true)
// A release elsewhere, as in another window or in the list of a select, is not told: what
// comes next says that it has been.
for (const end of ['pointerup', 'pointercancel', 'keydown', 'change']) addEventListener(end, up, true)
addEventListener('pointermove', (event) => { if (event.buttons === 0) up() }, true)

function up() {
  if (!down) return
  down = false
  setTimeout(() => { if (!down) for (const go of waiting.splice(0)) go() }) // after the click
}

export const pressed = () => down

// released ends at once where nothing is pressed.
export function released(): Promise<void> {
  return down ? new Promise((go) => waiting.push(go)) : Promise.resolve()
}
