package input

import (
	"humanqa/domain/project"
	"humanqa/httpapi/wire"
	"humanqa/internal/chat"
)

// Chat is a change of a project's chat. The zero Chat removes it; with an empty URL only the
// choice of reports changes.
type Chat struct {
	URL string
	project.Chat
}

// ChatChange reads the change; nil: none. The URL is a secret, and no error repeats it.
func ChatChange(o wire.Object) *Chat {
	return removable(o, "chat", func(c wire.Object) (in Chat) {
		in.URL = c.Optional("url", MaxURL)
		c.Check("url", in.URL, func(address string) (err error) {
			in.Address, err = chat.Shown(address)
			return err
		})
		in.Reports = c.OneOf("reports", "", project.ChatAll, project.ChatFailures)
		if in.URL == "" && in.Reports == "" {
			c.Wrong("url", "is missing; null instead of the object removes the chat")
		}
		return in
	})
}
