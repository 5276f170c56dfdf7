// A part of a page with data-verify lets a person hold a delivery's signatures
// against a secret. What they type stays in this browser: nothing is sent, and
// the field belongs to no form.

export function verifies() {
  show()
  document.addEventListener('humanqa:refreshed', show)
  document.addEventListener('click', (event) => {
    if ((event.target as Element).closest('[data-verify-now]') !== null) void verify()
  })
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.target as Element).id === 'verify-secret') void verify()
  })
}

function part(): HTMLElement | null { return document.querySelector<HTMLElement>('[data-verify]') }

function show() {
  const at = part()
  if (at !== null && 'subtle' in crypto) at.hidden = false // browsers offer it over HTTPS and on localhost only
}

async function verify() {
  const at = part()
  const field = document.getElementById('verify-secret') as HTMLInputElement | null
  const verdict = at?.querySelector<HTMLElement>('[data-verdict]')
  if (at === null || field === null || !verdict) return
  const secret = field.value.trim()
  if (secret === '') { verdict.textContent = 'Type the secret first.'; return }
  const body = document.getElementById('body')?.textContent ?? ''
  const { id, stamp, signature, standard } = at.dataset
  const service = hex(await hmac(bytes(secret), bytes(body))) === signature
  const own = 'v1,' + base64(await hmac(standardKey(secret), bytes(`${id}.${stamp}.${body}`)))
  const standardOf = (standard ?? '').split(' ')
  const says = [
    service ? 'X-Service-Signature is made with this secret.' : 'X-Service-Signature is not made with this secret.',
    standardOf.includes(own) ? 'webhook-signature is made with this secret, too.' : 'webhook-signature is not made with this secret.',
  ]
  if (service !== standardOf.includes(own)) {
    says[1] = standardOf.includes(own) ? 'webhook-signature is: a rotation was under way.' : 'webhook-signature is not.'
  }
  verdict.textContent = says.join(' ')
  verdict.className = standardOf.includes(own) || service ? 'verified' : 'refuted'
}

function bytes(text: string): Uint8Array<ArrayBuffer> { return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer> }

async function hmac(key: Uint8Array<ArrayBuffer>, message: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, message))
}

// What Standard Webhooks libraries make of a secret: the bytes behind "whsec_" in
// base64; any other secret stands for itself.
function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  if (!secret.startsWith('whsec_')) return bytes(secret)
  try {
    const raw = atob(secret.slice(6).replaceAll('-', '+').replaceAll('_', '/'))
    return Uint8Array.from(raw, (c) => c.charCodeAt(0)) as Uint8Array<ArrayBuffer>
  } catch {
    return bytes(secret)
  }
}

function hex(of: Uint8Array): string { return Array.from(of, (b) => b.toString(16).padStart(2, '0')).join('') }

function base64(of: Uint8Array): string { return btoa(String.fromCharCode(...of)) }
