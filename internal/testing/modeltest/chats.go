package modeltest

import (
	"fmt"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/internal/testing/logtest"
)

// Chats appends projects whose chat stays, ends or is removed.
func Chats(m *logtest.Memory) {
	set := project.Chat{Sealed: "sealed", Address: "hooks.slack.com …a1b2", Reports: project.ChatFailures}
	for i, then := range []project.Chat{set, {Address: set.Address, Reports: set.Reports, Ended: "the chat answered 410"}, {}} {
		id := fmt.Sprint("chat", i)
		m.RecordAs(domain.Metadata{Actor: "person:owner", AccountID: "acc", Time: *At(1)}, domain.ProjectStream(id),
			&project.Created{AccountID: "acc", Name: "shop", HookHash: "h-" + id, At: *At(1)},
			&project.ChatSet{Chat: set, ChangeID: "1", At: *At(2)})
		m.RecordAs(domain.Metadata{Actor: "webhooks", AccountID: "acc", Time: *At(3)}, domain.ProjectStream(id),
			&project.ChatSet{Chat: then, ChangeID: "2", At: *At(3)})
	}
}
