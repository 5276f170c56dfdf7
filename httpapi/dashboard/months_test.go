package dashboard_test

import (
	"io/fs"
	"sync"
	"testing"
	"time"

	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/thirdmonth"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// month is the third month of an account, on a service that the tests of it share.
var month struct {
	thirdmonth.Month
	delivered sync.Once
}

var months = pagetest.Shared{Pages: func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
	id, _, err := s.Commands.CreateAccount(s.Owner.Context(), pagetest.Operator(), "Globex", false)
	must.NoError(s.Owner, err)
	month.Month, err = thirdmonth.Write(s.Owner.Context(), s.Log, id, time.Now())
	must.NoError(s.Owner, err)
	return pages(s, s.API.Limits)
}}

// inThirdMonth is the service with the month, and an owner of its account.
func inThirdMonth(t *testing.T) (*world, guest) {
	t.Helper()
	w := on(months.In(t))
	month.delivered.Do(func() {
		at, err := w.Log.Head(t.Context())
		w.Shown(at, err)
		w.Must(w.Consumers.CatchUp(t.Context(), webhooks.SubscriberName))
		w.Must(month.Deliver(t.Context(), w.DB))
	})
	return w, w.Joined("Olga Owner", person.Grant{Role: person.Owner, AccountID: month.AccountID})
}

// The fixture has the figures that its package promises.
func TestTheThirdMonthIsThatOfFortyProjects(t *testing.T) {
	t.Parallel()
	w, _ := inThirdMonth(t)
	_, all, err := w.Reads.Projects.List(t.Context(), month.AccountID, projects.Filter{Limit: 1})
	w.Must(err)
	tests, err := w.Reads.Jobs.Total(t.Context(), month.AccountID, "", "")
	w.Must(err)
	balance, err := w.Reads.Credits.Balance(t.Context(), month.AccountID, time.Now())
	w.Must(err)
	asking, err := w.Reads.Jobs.CountAsking(t.Context(), month.AccountID)
	w.Must(err)
	health, err := webhooks.NewLog(w.DB).Health(t.Context(), month.AccountID, month.DeadHooks...)
	w.Must(err)
	held := 0
	for _, h := range health {
		if h.Status() == webhooks.HealthDisabled && h.Held > 0 {
			held++
		}
	}
	if all != thirdmonth.Projects || tests != thirdmonth.Tests || balance.Available != thirdmonth.Left || asking != thirdmonth.Asking || held != thirdmonth.Dead {
		t.Errorf("%d projects, %d tests, %d credits, %d questions, %d webhooks that hold events", all, tests, balance.Available, asking, held)
	}
}
