package ui

// Voice is the view of the template "voice" and of "voice-parts": the chat of a session, on
// the page of the room or beside a checklist. The script does the rest.
type Voice struct {
	Path    string // of the room
	Watches bool
	Off     bool // the client wants a voice chat, but the service has none
}
