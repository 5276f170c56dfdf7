package dashboard_test

import (
	"cmp"
	"context"
	"io/fs"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/pgtest"
)

// Each page is asked for when its event is in the log and in no read model.
func TestAPageDeniesNothingThatTheReadModelsDoNotShowYet(t *testing.T) {
	t.Parallel()
	var late atomic.Bool
	looked := make(chan struct{}, 1)
	w := on(pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		shown := func(context.Context) error {
			if late.Load() {
				return context.DeadlineExceeded
			}
			looked <- struct{}{}
			at, err := s.Log.Head(t.Context())
			return cmp.Or(err, s.WaitFor(t.Context(), at))
		}
		inTime := func(context.Context) error { return nil }
		s.API.Fresh = admit.NewFreshness(shown, inTime, inTime, logrus.StandardLogger())
		return pages(s, s.API.Limits)
	}))
	account := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	begun := func() claim {
		c := w.claims(w.Checker("ann"), w.test(account, "Checkout", nil))
		for i := range 3 {
			c.checks(i, job.ItemFail, "broken")
		}
		return c
	}
	complete := func(c claim) {
		_, _, err := w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, command.CompleteJob{Summary: "Broken."})
		w.Must(err)
	}
	downloaded, shared := begun(), begun()
	type ask struct {
		method, path string
		form         url.Values
	}
	for what, happens := range map[string]func() ask{
		"a test": func() ask {
			out, err := w.Commands.SubmitJob(t.Context(), w.cause(account), command.SubmitJob{
				Submission: job.Submission{URL: "https://shop.example.com", Title: "Login", Type: job.GeneralQA, Source: "api"},
			})
			w.Must(err)
			return ask{"GET", "/dashboard/jobs/" + out.JobID, nil}
		},
		"a report to download": func() ask {
			complete(downloaded)
			return ask{"GET", "/dashboard/jobs/" + downloaded.Claim.JobID + "/report/junit", nil}
		},
		"a report to share": func() ask {
			complete(shared)
			return ask{"POST", "/dashboard/jobs/" + shared.Claim.JobID + "/share", url.Values{"days": {"7"}}}
		},
	} {
		release := pgtest.HoldUp(t, w.DB, "projection_checkpoints")
		of := happens()
		late.Store(true)
		if early := w.Call(dev, of.method, of.path, of.form); early.Status != 503 || early.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d, Retry-After %q", what, early.Status, early.Header.Get("Retry-After"))
		}
		late.Store(false)
		answers := make(chan pagetest.Response)
		go func() { answers <- w.Call(dev, of.method, of.path, of.form) }()
		select {
		case got := <-answers:
			release()
			t.Errorf("%s: it was not looked for once more: %d", what, got.Status)
		case <-looked:
			release()
			if got := <-answers; got.Status != 200 {
				t.Errorf("%s: %d", what, got.Status)
			}
		}
		at, err := w.Log.Head(t.Context())
		w.Shown(at, err)
	}
}
