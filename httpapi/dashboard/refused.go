package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
)

// refusedRead bounds the events of refused tests that the overview sums, the newest.
const refusedRead = 500

// refusedView sums the tests that were refused since the person marked notices as seen.
type refusedView struct {
	announce.Refused
	Since  time.Time
	Reason domain.Code // of the newest
	// Deploys are the newest refused ones of each address, of projects without a later test.
	// All that their calls asked for is kept.
	Deploys []account.RefusedTest
	Cost    domain.Credits // of testing them now
}

// refused gives the refusals, and the cursor of the newest; nil: there are none.
func (d Deps) refused(r *ui.Request) (v *refusedView, upTo string, err error) {
	seen, err := d.Preferences.Seen(r.Context(), r.Account.ID, r.Person.ID)
	if err != nil {
		return nil, "", err
	}
	found, err := d.Reads.Events.Refusals(r.Context(), r.Account.ID, "", refusedRead)
	listed := map[string]bool{}
	for _, e := range found {
		if seen != "" && events.LaterCursor(seen, e.Cursor) == seen || e.Recorded.Meta.Time.Before(d.Now().Add(-noticesFor)) {
			break
		}
		told := e.Recorded.Event.(*account.SubmissionsRefused)
		if v == nil {
			v, upTo = &refusedView{Reason: told.Counts[0].Reason}, e.Cursor
		}
		v.Since = told.From
		v.Tests += announce.RefusedOf(told).Tests
		for _, test := range slices.Backward(told.Samples) {
			place := test.ProjectID + " " + test.URL
			if listed[place] || len(v.Samples) == account.MaxSamples {
				continue
			}
			listed[place] = true
			v.Samples = append(v.Samples, test)
			if !test.Whole {
				continue
			}
			later, _, err := d.Reads.Jobs.List(r.Context(), r.Account.ID, jobs.Filter{ProjectID: test.ProjectID, Since: &told.To, Limit: 1})
			if err != nil {
				return nil, "", err
			}
			if len(later) == 0 {
				v.Deploys = append(v.Deploys, test)
				v.Cost += job.GeneralQA.Price(test.Urgent)
			}
		}
	}
	return v, upTo, err
}

// testRefused tests the refused deploys that the page showed. Two persons who press at once
// buy each once.
func (d Deps) testRefused(r *ui.Request) (ui.Answer, error) {
	v, upTo, err := d.refused(r)
	if err == nil && (v == nil || fmt.Sprint(v.Cost) != r.PostFormValue("cost")) {
		err = domain.Conflict("the refused deploys have changed since they were shown").WithHint("nothing was charged")
	}
	if err != nil {
		return ui.Answer{}, err
	}
	var at domain.Position
	for _, test := range v.Deploys {
		s := job.Submission{URL: test.URL, Commit: test.Commit, Branch: test.Branch, Environment: test.Environment, Urgent: test.Urgent}
		if err := d.Limits.StillAllowed(r.Context(), r.Account, jobs.Outline{Submission: s}); err != nil {
			return ui.Answer{}, err
		}
		in := command.Deploy{Test: command.HostedTest{Submission: s}}
		d.Limits.Place(&in.Test)
		if s.Commit != "" {
			in.Keys = []string{"commit:" + strings.ToLower(s.Commit)}
		}
		cause := r.Cause()
		cause.CommandID = domain.CommandIDFor("refused", test.ProjectID, test.URL, upTo)
		out, err := d.Commands.Deploy(r.Context(), cause, test.ProjectID, in)
		if err != nil {
			return ui.Answer{}, err
		}
		at = at.Max(out.Position)
	}
	return r.Done(at, nil, "/dashboard/jobs?status=pending")
}
