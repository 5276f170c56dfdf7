// A click goes to what is under the pointer both when its button goes down and when it
// comes up. So what would move meanwhile waits for the release.
let down = false
const waiting: (() => void)[] = []

addEventListener('pointerdown', (event) => { if (event.button === 0) down = true }, true)
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, up, true)
// A release that came elsewhere, as in another window, was not told.
addEventListener('pointermove', (event) => { if (down && event.buttons === 0) up() }, true)

function up() {
  down = false
  setTimeout(() => { for (const go of waiting.splice(0)) go() }) // after the click
}

export const pressed = () => down

// released ends at once where nothing is pressed.
export function released(): Promise<void> {
  return down ? new Promise((go) => waiting.push(go)) : Promise.resolve()
}
