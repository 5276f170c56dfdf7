package fold_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore"
	"humanqa/eventstore/fold"
	"humanqa/internal/testing/must"
)

func TestAFoldShowsTheStateAndNoSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stream string
		events []domain.Event
		want   []string
	}{
		{"job-1", []domain.Event{
			&job.Created{Submission: job.Submission{AccountID: "acc", Title: "Shop"}, Credentials: "v1.secret", AccessInstructions: "v1.secret"},
			&job.Claimed{CheckerID: "ann", Token: 1},
		}, []string{`"Status":"claimed"`, `"Credentials":"[sealed]"`, `"AccessInstructions":"[sealed]"`, `"CheckerID":"ann"`}},
		{"project-1", []domain.Event{
			&project.Created{AccountID: "acc", Name: "Shop", HookHash: "secret"},
			&project.SecretSet{SecretID: "s", Sealed: "v1.secret", Fingerprint: "secret"},
		}, []string{`"Name":"Shop"`, `"HookHash":"[sealed]"`, `"Sealed":"[sealed]"`, `"Fingerprint":"[sealed]"`}},
		{"account-1", []domain.Event{
			&account.Created{Name: "Acme"}, &account.KeyIssued{KeyID: "k", Hash: "secret", Prefix: "qa_live_"},
		}, []string{`"Name":"Acme"`, `"Hash":"[sealed]"`}},
		{"credits-1", []domain.Event{
			&credits.Granted{LotID: "l", Amount: 10, BalanceAfter: 10},
			&credits.Debited{JobID: "j", Amount: 4, Parts: []credits.Part{{LotID: "l", Amount: 4}}, BalanceAfter: 6},
		}, []string{`"Granted":10`, `"Used":4`, `"Balance":6`, `"Remaining":6`}},
		{"other-1", []domain.Event{&account.Created{Name: "Acme"}}, []string{"null"}},
	} {
		f := fold.New(c.stream)
		var shown string
		for i, e := range c.events {
			data, meta, err := eventstore.Encode(domain.NewEvent{Event: e})
			must.NoError(t, err)
			state, err := f.After(eventstore.RawEvent{Stream: c.stream, Revision: uint64(i), Type: e.EventType(), Data: data, Meta: meta})
			must.NoError(t, err)
			shown = string(state)
		}
		for _, part := range c.want {
			if !strings.Contains(shown, part) {
				t.Errorf("%s: %s is not in %s", c.stream, part, shown)
			}
		}
		if strings.Contains(shown, `secret"`) {
			t.Errorf("%s shows a secret: %s", c.stream, shown)
		}
	}
}
