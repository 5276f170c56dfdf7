package project

import (
	"cmp"
	"time"

	"humanqa/domain"
)

// The reports that a chat is told of.
const (
	ChatAll      = "all"
	ChatFailures = "failures" // reports with a failed item, and tests that were given up
)

// Chat is where the project's notices go, beside e-mail. The zero Chat is none.
type Chat struct {
	// Sealed is the address (vault, bound to this stream): its holder can write to the
	// chat. Address is the part of it that is shown.
	Sealed  string `json:"sealed,omitempty"`
	Address string `json:"address,omitempty"`
	Reports string `json:"reports,omitempty"`
	Ended   string `json:"ended,omitempty"` // why nothing goes there any more; Sealed is empty then
}

// ChatSet is the project's chat after a change.
type ChatSet struct {
	Chat
	ChangeID string    `json:"changeId"` // tells a repeat from another change
	At       time.Time `json:"at"`
}

func (*ChatSet) EventType() string { return "project.chat_set" }

// DecideChat sets the chat, ends it, or removes it (the zero Chat); a repeat changes nothing.
// A change of the reports alone has no address.
func DecideChat(s State, set ChatSet) ([]domain.Event, error) {
	alone := set.Sealed == "" && set.Ended == "" && set.Chat != Chat{}
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.ChatID == set.ChangeID:
		return nil, nil
	case alone && s.Chat.Sealed == "":
		return nil, domain.InvalidAt("chat.url", "is missing: the project has no chat")
	case alone:
		set.Sealed, set.Address = s.Chat.Sealed, s.Chat.Address
	}
	if set.Address != "" {
		set.Reports = cmp.Or(set.Reports, s.Chat.Reports, ChatAll)
	}
	if set.Chat == s.Chat {
		return nil, nil
	}
	return []domain.Event{&set}, nil
}
