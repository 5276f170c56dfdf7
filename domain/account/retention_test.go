package account_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/retention"
)

func days(n int) *int { return &n }

func set(n *int) retention.Setting { return retention.Setting{Set: true, Value: n} }

func keep(c retention.Change) decide {
	return func(s account.State) ([]domain.Event, error) {
		return account.DecideRetention(s, c, time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	}
}

func TestAnAccountSaysHowLongItsEvidenceIsKept(t *testing.T) {
	t.Parallel()
	kept := func(evidence, recordings *int) domain.Event {
		return &account.RetentionChanged{
			Keep: retention.Keep{EvidenceDays: evidence, RecordingsDays: recordings}, At: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		}
	}
	given(t, created()).When(keep(retention.Change{Evidence: set(days(90))})).Events(kept(days(90), nil))
	given(t, created(), kept(days(90), nil)).When(keep(retention.Change{Recordings: set(days(7))})).Events(kept(days(90), days(7)))
	given(t, created(), kept(days(90), days(7))).When(keep(retention.Change{Evidence: set(days(90))})).Nothing()
	given(t, created(), kept(days(90), days(7))).When(keep(retention.Change{Evidence: set(nil)})).Events(kept(nil, days(7)))
	given(t, created()).When(keep(retention.Change{Evidence: set(days(0))})).Invalid("keepEvidenceDays")
	given(t, created()).When(keep(retention.Change{Recordings: set(days(3651))})).Invalid("keepRecordingsDays")
	given(t).When(keep(retention.Change{Evidence: set(days(1))})).NotFound("account")
}
