package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/httpapi/evidence"
	"humanqa/internal/testing/must"
)

// later moves the account's time, as a sandbox's clock does. What people tested is never a
// sandbox's, so no command moves it here.
func (s *service) later(accountID string, days int) {
	s.t.Helper()
	by := int64(days) * 86400
	s.happened(domain.AccountStream(accountID), time.Now(),
		&account.ClockAdvanced{AdvanceID: uuid.NewString(), Seconds: by, OffsetSeconds: by})
}

// filmed is a job that a person tested, with a picture and a recording.
func (s *service) filmed(key string) *work {
	s.t.Helper()
	w := s.working(key)
	w.check(0, `{"status":"fail","screenshotUrl":"`+w.shown(aPNG)+`"}`)
	film := w.recording()
	w.sendsAll(film, aFilm)
	w.call("POST", "/recordings/"+film+"/finish", "").want(http.StatusOK)
	s.assembles(0)
	w.completes("Broken.")
	return w
}

func (s *service) expires() evidence.Swept {
	s.t.Helper()
	swept, err := s.Evidence.Expire(s.t.Context())
	must.NoError(s.t, err)
	s.visible(s.log.Head(), nil)
	return swept
}

func (s *service) expired() (ids []string) {
	for _, e := range s.events() {
		if a, ok := e.Event.(*job.EvidenceExpired); ok {
			for _, p := range a.Pieces {
				ids = append(ids, p.ID)
			}
		}
	}
	return ids
}

// The operator who decides a dispute looks at the evidence: it stays until then.
func TestADisputedTestKeepsItsEvidenceUntilTheDecision(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	w := s.filmed(key)
	s.call(key, "PATCH", "/v1/evidence", `{"keepEvidenceDays":7}`).want(http.StatusOK)
	made := s.call(key, "POST", "/v1/jobs/"+w.jobID+"/disputes", `{"itemId":"`+w.items[0]+`","reason":"It works here."}`).want(http.StatusCreated)
	s.later(accountID, 8)
	equal(t, s.expires(), evidence.Swept{})
	usage, _ := s.call(key, "GET", "/v1/evidence", "").want(http.StatusOK)["usage"].(map[string]any)
	equal(t, usage["evidence"].(map[string]any)["held"], any(map[string]any{"files": 1.0, "bytes": float64(len(aPNG))}))
	rules := command.Cause{CommandID: domain.NewCommandID(), Actor: "operator:o", AccountID: accountID}
	s.visible(s.commands.RuleDispute(t.Context(), rules, w.jobID, made["id"].(string), job.Stands))
	equal(t, s.expires().Expired.Files, int64(2)) // the picture and the recording
}

// Decisions, "What is kept": a recording goes before the pictures, and the report, its
// formats and its links say so.
func TestEvidenceGoesByTheSettingAndTheReportSaysSo(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	w := s.filmed(key)
	before := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)
	film, _ := before["recordingUrl"].(string)
	shot, _ := before["items"].([]any)[0].(map[string]any)["screenshotUrl"].(string)
	lasting := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report?format=md", "").Body.String()

	would := s.call(key, "GET", "/v1/evidence?keepRecordingsDays=7&keepEvidenceDays=90", "").want(http.StatusOK)
	equal(t, would["estimate"].(map[string]any)["due"], any(map[string]any{"files": 0.0, "bytes": 0.0}))
	month, _ := would["estimate"].(map[string]any)["nextMonth"].(map[string]any)
	equal(t, month["files"], any(1.0))
	set := s.call(key, "PATCH", "/v1/evidence", `{"keepRecordingsDays":7,"keepEvidenceDays":90}`).want(http.StatusOK)
	equal(t, []any{set["keepRecordingsDays"], set["keepEvidenceDays"]}, []any{7.0, 90.0})

	s.later(accountID, 6)
	equal(t, s.expires(), evidence.Swept{})
	equal(t, s.visit(film).Code, http.StatusOK)

	s.later(accountID, 8)
	size := before["recordings"].([]any)[0].(map[string]any)["size"].(float64)
	one := evidence.Size{Files: 1, Bytes: int64(size)}
	equal(t, s.expires(), evidence.Swept{Expired: one, Erased: one})
	equal(t, s.expires(), evidence.Swept{})
	gone := s.visit(film).refused(http.StatusGone, domain.CodeGone)
	day := time.Now().AddDate(0, 0, 8).UTC().Format(time.DateOnly)
	equal(t, gone["error"], any("the evidence is no longer kept: it went on "+day))
	equal(t, gone["reason"], any("keepRecordingsDays of the account: 7 days"))
	equal(t, gone["size"], any(size))
	equal(t, s.visit(shot).Code, http.StatusOK)

	after := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)
	kept, _ := after["noLongerKept"].([]any)
	if len(kept) != 1 || kept[0].(map[string]any)["name"] != "evidence-"+evidenceIDOf(t, film)+".webm" || kept[0].(map[string]any)["size"] != size {
		t.Errorf("the report says %v", kept)
	}
	s.visit(after["recordingUrl"].(string)).refused(http.StatusGone, domain.CodeGone)
	for _, field := range []string{"overallStatus", "passCount", "failCount", "skipCount", "checkerSummary"} {
		equal(t, after[field], before[field])
	}
	words := "no longer kept since " + day + ": evidence-" + evidenceIDOf(t, film) + ".webm"
	md := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report?format=md", "").Body.String()
	if !strings.Contains(md, words) || strings.Contains(md, evidence.Prefix+evidenceIDOf(t, film)) {
		t.Errorf("the Markdown is\n%s", md)
	}

	s.later(accountID, 91)
	equal(t, s.expires().Erased.Files, int64(1))
	s.set(`UPDATE http_recording_parts SET begun_at = now() - interval '61 minutes'`) // what the recording was made of
	s.sweeps()
	equal(t, s.sizeOf(accountID), 0)
	junit := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report?format=junit", "").Body.String()
	if !strings.Contains(junit, "Screenshot: no longer kept since ") {
		t.Errorf("the JUnit form is\n%s", junit)
	}
	// A link that an exported report has for good.
	for _, link := range strings.FieldsFunc(lasting, func(c rune) bool { return strings.ContainsRune("<> \n|", c) }) {
		if strings.Contains(link, evidence.Prefix) {
			s.visit(link).refused(http.StatusGone, domain.CodeGone)
		}
	}
	usage, err := s.Evidence.Usage(t.Context(), accountID)
	must.NoError(t, err)
	equal(t, []int64{usage.Kept().Files, usage.Gone.Files}, []int64{0, 2})
	s.call(key, "GET", "/v1/evidence?keepEvidenceDays=0", "").refused(http.StatusBadRequest, domain.CodeInvalidRequest)
	equal(t, s.call(key, "PATCH", "/v1/evidence", `{"keepEvidenceDays":3651}`).paths(), []string{"keepEvidenceDays"})
}

// The shorter of the account's and the project's settings counts, and a hold of any of the
// three keeps the evidence.
func TestAHoldKeepsEvidence(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	projectID := s.project(key, `{"name":"Shop"}`)
	w := s.claims(s.checker(), s.submittedAs(key, `{"url":"https://example.com/shop","title":"Checkout","description":"Buy a thing",
		"jobType":"General QA","projectId":"`+projectID+`","checklistItems":[{"description":"pay by card"}]}`))
	w.check(0, `{"status":"fail","screenshotUrl":"`+w.shown(aPNG)+`"}`)
	w.completes("Broken.")
	patched := s.call(key, "PATCH", "/v1/projects/"+projectID, `{"keepEvidenceDays":10}`).want(http.StatusOK)
	equal(t, patched["keepEvidenceDays"], any(10.0))
	s.call(key, "PATCH", "/v1/evidence", `{"keepEvidenceDays":30}`).want(http.StatusOK)
	s.later(accountID, 11)
	cause := func() command.Cause {
		return command.Cause{CommandID: uuid.New(), Actor: "operator", AccountID: accountID}
	}
	for _, of := range []command.EvidenceSubject{
		{Kind: retention.OfAccount, ID: accountID}, {Kind: retention.OfProject, ID: projectID}, {Kind: retention.OfJob, ID: w.jobID},
	} {
		at, err := s.commands.PlaceHold(t.Context(), cause(), of, "a lawsuit", false)
		s.visible(at, err)
		equal(t, s.expires(), evidence.Swept{})
		usage, err := s.Evidence.Usage(t.Context(), accountID)
		must.NoError(t, err)
		equal(t, usage.Held().Files, int64(1))
		// Whatever a read model that is behind nominates, the log decides.
		gone, err := s.commands.ExpireEvidence(t.Context(), cause(), w.jobID, []job.Piece{{ID: uuid.NewString()}})
		if err != nil || len(gone) != 0 {
			t.Errorf("under a hold of the %s %v went, %v", of.Kind, gone, err)
		}
		at, err = s.commands.ReleaseHold(t.Context(), cause(), of, "settled", false)
		s.visible(at, err)
	}
	otherID, _ := s.account(100)
	other := command.Cause{CommandID: uuid.New(), Actor: "person:x", AccountID: otherID}
	for _, of := range []command.EvidenceSubject{
		{Kind: retention.OfAccount, ID: accountID}, {Kind: retention.OfProject, ID: projectID}, {Kind: retention.OfJob, ID: w.jobID},
	} {
		if _, err := s.commands.PlaceHold(t.Context(), other, of, "mine", false); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("another account's hold on the %s: %v", of.Kind, err)
		}
	}
	equal(t, s.expires().Expired.Files, int64(1))
	gone := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)["noLongerKept"].([]any)[0].(map[string]any)
	equal(t, gone["reason"], any("keepEvidenceDays of the project: 10 days"))
}

// A process that dies between any two steps leaves what the next one finishes: each piece
// goes once, and nothing that is kept goes with it.
func TestASweepThatDiesAnywhereIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	dead := errors.New("dead")
	all := own(t)
	for _, at := range []struct {
		step string
		nth  int
	}{
		{"lease", 1}, {"event", 1}, {"event", 2}, {"row", 1}, {"row", 2}, {"lease", 2}, {"files", 1}, {"file", 1}, {"file", 2}, {"erased", 1},
	} {
		t.Run(fmt.Sprintf("%s %d", at.step, at.nth), func(t *testing.T) {
			s := all.beneath(t) // one after the other: a sweep is of every account's files
			accountID, key := s.account(100)
			keptID, keptKey := s.account(100)
			for range 2 {
				w := s.working(key)
				w.check(0, `{"status":"fail","screenshotUrl":"`+w.shown(aPNG)+`"}`)
				w.completes("Broken.")
			}
			kept := s.working(keptKey).shown(aPNG)
			s.call(key, "PATCH", "/v1/evidence", `{"keepEvidenceDays":1}`).want(http.StatusOK)
			s.later(accountID, 2)
			s.later(keptID, 2)
			seen := 0
			_, err := evidence.Expiry{DB: s.db, Files: s.Evidence.Files, Commands: s.commands, Before: func(step string) error {
				if step == at.step {
					if seen++; seen == at.nth {
						return dead
					}
				}
				return nil
			}}.Sweep(t.Context())
			if !errors.Is(err, dead) {
				t.Fatalf("the sweep went on: %v", err)
			}
			// A hold that comes after the event does not bring the piece back.
			if at.step == "row" && at.nth == 1 {
				hold, err := s.commands.PlaceHold(t.Context(), command.Cause{CommandID: uuid.New(), Actor: "operator", AccountID: accountID},
					command.EvidenceSubject{Kind: retention.OfAccount, ID: accountID}, "too late", true)
				s.visible(hold, err)
				s.set(`UPDATE http_evidence SET taken_until = now() - interval '1 second' WHERE taken_until IS NOT NULL`)
				s.expires()
				equal(t, len(s.expired()), s.goneRows())
				hold, err = s.commands.ReleaseHold(t.Context(), command.Cause{CommandID: uuid.New(), Actor: "operator", AccountID: accountID},
					command.EvidenceSubject{Kind: retention.OfAccount, ID: accountID}, "over", true)
				s.visible(hold, err)
			}
			s.set(`UPDATE http_evidence SET taken_until = now() - interval '1 second' WHERE taken_until IS NOT NULL`)
			s.expires()
			equal(t, len(s.expired()), 2)
			equal(t, s.goneRows(), 2)
			equal(t, s.sizeOf(accountID), 0)
			equal(t, s.visit(kept).Code, http.StatusOK)
			equal(t, s.expires(), evidence.Swept{})
		})
	}
}

func (s *service) goneRows() (n int) {
	s.t.Helper()
	must.NoError(s.t, s.db.GetContext(s.t.Context(), &n,
		`SELECT count(*) FROM http_evidence
		WHERE account_id = ANY ($1) AND gone_at IS NOT NULL AND erased_at IS NOT NULL AND taken_until IS NULL`, pq.Array(s.parts.Accounts())))
	return n
}

// A backup that is under way still reads the files of its snapshot.
func TestFilesWaitForABackup(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	w := s.working(key)
	w.check(0, `{"status":"fail","screenshotUrl":"`+w.shown(aPNG)+`"}`)
	w.completes("Broken.")
	s.call(key, "PATCH", "/v1/evidence", `{"keepEvidenceDays":1}`).want(http.StatusOK)
	s.later(accountID, 2)
	backup, err := s.db.Connx(t.Context())
	must.NoError(t, err)
	must.NoError(t, evidence.LockFiles(t.Context(), backup))
	swept := s.expires()
	equal(t, []any{swept.Expired.Files, swept.Erased.Files, swept.Waiting}, []any{int64(1), int64(0), true})
	equal(t, s.sizeOf(accountID), 2)
	_, err = backup.ExecContext(t.Context(), `SELECT pg_advisory_unlock_all()`)
	must.NoError(t, err)
	must.NoError(t, backup.Close())
	equal(t, s.expires().Erased.Files, int64(1))
	equal(t, s.sizeOf(accountID), 0)
}
