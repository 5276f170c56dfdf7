package job_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/retention"
)

func days(n int) *int { return &n }

func picture(id string) job.Piece { return job.Piece{ID: id, ContentType: "image/png", Size: 5} }

func recorded(id string) job.Piece {
	return job.Piece{ID: id, ContentType: "video/webm", Size: 9, Recording: true}
}

func expire(keep job.Retention, now time.Time, pieces ...job.Piece) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideExpire(s, keep, pieces, now) }
}

// Decisions, "What is kept".
func TestEvidenceGoesByTheShorterSettingOnceTheJobHasEnded(t *testing.T) {
	t.Parallel()
	ended := minute(30)
	keep := job.Retention{
		Account: retention.Keep{EvidenceDays: days(90), RecordingsDays: days(10)},
		Project: retention.Keep{EvidenceDays: days(30)},
	}
	after := func(n int) time.Time { return ended.Add(time.Duration(n) * 24 * time.Hour) }
	finished := []domain.Event{created(), &job.Cancelled{Reason: job.CancelClient, At: ended}}

	t.Run("a recording by its own, a picture by the project's", func(t *testing.T) {
		given(t, finished...).When(expire(keep, after(30), picture("p"), recorded("r"))).Events(
			&job.EvidenceExpired{
				Pieces: []job.Piece{picture("p")}, At: after(30), Rule: retention.Rule{Setting: "keepEvidenceDays", Of: "project", Days: 30},
			},
			&job.EvidenceExpired{
				Pieces: []job.Piece{recorded("r")}, At: after(30), Rule: retention.Rule{Setting: "keepRecordingsDays", Of: "account", Days: 10},
			})
	})
	t.Run("and not a moment earlier", func(t *testing.T) {
		given(t, finished...).When(expire(keep, after(10).Add(-time.Millisecond), picture("p"), recorded("r"))).Nothing()
	})
	t.Run("nothing without a setting", func(t *testing.T) {
		given(t, finished...).When(expire(job.Retention{}, after(9999), picture("p"), recorded("r"))).Nothing()
	})
	t.Run("a recording by the days of all evidence, if these are fewer", func(t *testing.T) {
		fewer := job.Retention{Account: retention.Keep{EvidenceDays: days(2), RecordingsDays: days(10)}}
		given(t, finished...).When(expire(fewer, after(2), recorded("r"))).Events(&job.EvidenceExpired{
			Pieces: []job.Piece{recorded("r")}, At: after(2), Rule: retention.Rule{Setting: "keepEvidenceDays", Of: "account", Days: 2},
		})
	})
	t.Run("a job that has not ended keeps everything", func(t *testing.T) {
		given(t, created()).When(expire(keep, after(9999), picture("p"))).Nothing()
	})
	t.Run("the same piece goes once", func(t *testing.T) {
		gone := &job.EvidenceExpired{Pieces: []job.Piece{picture("p")}, At: after(30)}
		given(t, append(finished, gone)...).When(expire(keep, after(31), picture("p"))).Nothing()
	})
	t.Run("a hold of the account or the project keeps it", func(t *testing.T) {
		held := keep
		held.Held = true
		given(t, finished...).When(expire(held, after(9999), picture("p"))).Nothing()
	})
	t.Run("a hold of the job keeps it until it is released", func(t *testing.T) {
		placed := &job.HoldPlaced{HoldPlaced: retention.HoldPlaced{Reason: "a lawsuit", At: ended}}
		given(t, append(finished, placed)...).When(expire(keep, after(9999), picture("p"))).Nothing()
		released := &job.HoldReleased{HoldReleased: retention.HoldReleased{Reason: "settled", At: ended}}
		given(t, append(finished, placed, released)...).When(expire(keep, after(30), picture("p"))).Events(&job.EvidenceExpired{
			Pieces: []job.Piece{picture("p")}, At: after(30), Rule: retention.Rule{Setting: "keepEvidenceDays", Of: "project", Days: 30},
		})
	})
}

// The operator who decides a dispute looks at the evidence.
func TestADisputeKeepsTheEvidenceUntilItIsDecided(t *testing.T) {
	t.Parallel()
	keep := job.Retention{Account: retention.Keep{EvidenceDays: days(2)}}
	late := minute(5 * 24 * 60)
	open := then(withReport(), disputed("d1", "i1", job.ItemFail))
	given(t, open...).When(expire(keep, late, picture("p"))).Nothing()
	decided := then(open, ruled("d1", "i1", "", job.Stands))
	given(t, decided...).When(expire(keep, late, picture("p"))).Events(&job.EvidenceExpired{
		Pieces: []job.Piece{picture("p")}, At: late, Rule: retention.Rule{Setting: "keepEvidenceDays", Of: "account", Days: 2},
	})
}

func TestAHoldOfAJob(t *testing.T) {
	t.Parallel()
	place := func(reason string, operator bool) decide {
		return func(s job.State) ([]domain.Event, error) {
			return job.DecideHold(s, retention.Order{HoldPlaced: retention.HoldPlaced{Reason: reason, Operator: operator, At: minute(40)}})
		}
	}
	release := func(reason string, operator bool) decide {
		return func(s job.State) ([]domain.Event, error) {
			return job.DecideHold(s, retention.Order{Release: true, HoldPlaced: retention.HoldPlaced{Reason: reason, Operator: operator, At: minute(50)}})
		}
	}
	placed := func(reason string, operator bool) domain.Event {
		return &job.HoldPlaced{HoldPlaced: retention.HoldPlaced{Reason: reason, Operator: operator, At: minute(40)}}
	}
	given(t, created()).When(place("  a lawsuit ", false)).Events(placed("a lawsuit", false))
	given(t, created()).When(place(" ", false)).Invalid("reason")
	given(t, created()).When(place("two\nlines", false)).Invalid("reason")
	given(t, created(), placed("a lawsuit", false)).When(place("a lawsuit", false)).Nothing()
	given(t, created(), placed("a lawsuit", false)).When(place("another", false)).Conflict("a hold is in place since " + minute(40).UTC().Format(time.RFC3339))
	given(t, created(), placed("a lawsuit", false)).When(place("a court's order", true)).Events(placed("a court's order", true))
	given(t, created(), placed("an order", true)).When(release("please", false)).Refused(
		domain.Forbidden("an operator of the service placed the hold").WithHint("ask the operator to release it"))
	given(t, created()).When(release("none there", false)).Nothing()
	given(t, created(), placed("an order", true)).When(release("over", true)).Events(
		&job.HoldReleased{HoldReleased: retention.HoldReleased{Reason: "over", Operator: true, At: minute(50)}})
}
