package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/evidence"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// waits returns once a transaction waits for the evidence of a job.
func (s *service) waits() {
	s.t.Helper()
	eventually.True(s.t, "a request waits for the job's evidence", func() bool {
		var waiting bool
		must.NoError(s.t, s.db.GetContext(s.t.Context(), &waiting, `SELECT EXISTS (
			SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			  AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`))
		return waiting
	})
}

// A picture is taken away from the one item that shows it while another item is
// given it: whichever comes first, no report leads to nothing.
func TestAPictureIsNotTakenAwayWhileItIsGiven(t *testing.T) {
	t.Parallel()
	s := own(t)
	for _, takenFirst := range []bool{true, false} {
		_, key := s.account(100)
		w := s.claims(s.checker(), s.submittedWith(key, checklistOf(2)))
		link := w.shown(aPNG)
		give := func(n int) result {
			return w.call("PUT", "/items/"+w.items[n], `{"status":"pass","screenshotUrl":"`+link+`"}`)
		}
		give(0).want(http.StatusOK)
		id := evidenceIDOf(t, link)
		claim := command.Claim{JobID: w.jobID}
		must.NoError(t, s.db.GetContext(t.Context(), &claim.CheckerID, `SELECT checker_id FROM http_evidence WHERE id = $1`, id))
		claim.Token, _ = strconv.Atoi(w.token)
		take := func(meanwhile func()) error {
			return s.Evidence.Drop(t.Context(), w.jobID, evidence.Prefix+id, func() (command.Hidden, error) {
				left, _, err := s.commands.HideScreenshot(t.Context(), operator(domain.NewCommandID()), claim, w.items[0], evidence.Prefix+id)
				if meanwhile != nil {
					meanwhile()
				}
				return left, err
			})
		}
		if takenFirst {
			given := make(chan result, 1)
			must.NoError(t, take(func() {
				go func() { given <- give(1) }()
				s.waits()
			}))
			equal(t, (<-given).refused(http.StatusConflict, domain.CodeConflict)["error"], any("a file that you refer to was taken away"))
			link = w.shown(aPNG) // it is uploaded again, and there again
			give(1).want(http.StatusOK)
		} else {
			taken := make(chan error, 1)
			must.NoError(t, s.Evidence.Give(t.Context(), w.jobID, []string{evidence.Prefix + id}, func() error {
				go func() { taken <- take(nil) }()
				s.waits()
				in := command.CheckItem{ItemID: w.items[1], Status: "pass", Screenshots: []string{evidence.Prefix + id}}
				_, _, err := s.commands.CheckItem(t.Context(), operator(domain.NewCommandID()), claim, in)
				return err
			}))
			must.NoError(t, <-taken)
		}
		w.check(0, `{"status":"pass"}`)
		w.completes("Fine.")
		report := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)
		items, _ := report["items"].([]any)
		shot, _ := field(items, 1, "screenshotUrl").(string)
		if !strings.Contains(shot, id) {
			t.Fatalf("the report shows %q", shot)
		}
		equal(t, s.visit(shot).Body.String(), aPNG)
	}
}

// Each picture is given while a connection is held, and its command needs another one.
func TestPicturesThatAreGivenAtOnceDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := own(t)
	const all = 3
	s.db.SetMaxOpenConns(all)
	lent := pgpool.Lend(s.db, all-1)
	t.Cleanup(func() { must.NoError(t, lent.Close()) })
	kept := evidence.New(evidence.Deps{DB: lent})
	_, key := s.account(100)
	w := s.working(key)
	stored := evidence.Prefix + evidenceIDOf(t, w.shown(aPNG))
	var given sync.WaitGroup
	for range 4 * all {
		given.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
			defer cancel()
			err := kept.Give(ctx, w.jobID, []string{stored}, func() error {
				return s.db.PingContext(ctx)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	given.Wait()
}
