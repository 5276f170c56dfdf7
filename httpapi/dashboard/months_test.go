package dashboard_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/httpapi/ui"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
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

var months = pagetest.Shared{Pages: func(s *pagetest.Service) ([]fs.FS, []ui.Page) { return withThirdMonth(s, &month.Month) }}

// withThirdMonth writes the month of a new account before the service follows its log.
func withThirdMonth(s *pagetest.Service, m *thirdmonth.Month) ([]fs.FS, []ui.Page) {
	id, _, err := s.Commands.CreateAccount(s.Owner.Context(), pagetest.Operator(), "Globex", false)
	must.NoError(s.Owner, err)
	*m, err = thirdmonth.Write(s.Owner.Context(), s.Log, id, 1, time.Now())
	must.NoError(s.Owner, err)
	return pages(s, s.API.Limits)
}

// shows waits until the read models show the month.
func (w *world) shows(m thirdmonth.Month) {
	w.T.Helper()
	at, err := w.Log.Head(w.T.Context())
	w.Must(err)
	ctx, cancel := context.WithTimeout(w.T.Context(), 10*eventually.Patience) // they are 25,000 events
	defer cancel()
	w.Must(w.Consumers.WaitFor(ctx, at))
	w.Must(w.Consumers.CatchUp(w.T.Context(), webhooks.SubscriberName))
	w.Must(m.Deliver(w.T.Context(), w.DB))
	w.Must(m.Name(w.T.Context(), w.DB))
}

// inThirdMonth is the service with the month, and the owner of its account. A test that
// changes the month, or keeps a draft as this person, has an own month or person.
func inThirdMonth(t *testing.T) (*world, guest) {
	t.Helper()
	w := on(months.In(t))
	month.delivered.Do(func() { w.shows(month.Month) })
	return w, w.SignsIn(month.People[0].ID)
}

// ownThirdMonth is a month that the test may change.
func ownThirdMonth(t *testing.T) (*world, thirdmonth.Month) {
	t.Helper()
	var m thirdmonth.Month
	w := on(pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) { return withThirdMonth(s, &m) }))
	w.shows(m)
	return w, m
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

// The members stand under their names and roles in the list, and their acts in the activity.
func TestTheMembersOfTheThirdMonthAreNamed(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	members := w.Call(owner, "GET", "/dashboard/members", nil).Body
	if len(month.People) != thirdmonth.Members {
		t.Errorf("%d members", len(month.People))
	}
	for _, one := range month.People {
		_, row, _ := strings.Cut(members, `id="person-`+one.ID+`"`)
		row, _, _ = strings.Cut(row, "</tr>")
		says(t, row, one.Name, ">"+string(one.Role)+"<")
	}
	activity := w.Call(owner, "GET", "/dashboard/activity", nil).Body
	says(t, activity, ">Dee Developer</a>", ">Olga Owner</a>", ">Deploy hook</a>")
	of := w.Call(owner, "GET", "/dashboard/activity?by=person:"+month.People[1].ID, nil).Body
	if rows := strings.Count(of, `<tr id="fact-`); rows != 7 || strings.Contains(of, ">Olga Owner</a>") {
		t.Errorf("%d acts of a member", rows)
	}
}

// tallest is the height that a page of the third month may have on a screen of 1280 pixels.
const tallest = 1600

// The pages that an owner of forty projects opens each day end within two screens.
func TestPagesOfTheThirdMonthEndWithinTwoScreens(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	tab := w.Tab(owner)
	for _, page := range []struct{ name, path string }{
		{"overview", "/dashboard"}, {"projects", "/dashboard/projects"}, {"report", "/dashboard/jobs/" + month.Report},
		{"report-newest", "/dashboard/jobs/" + month.Newest}, {"webhook", "/dashboard/projects/" + month.DeadHooks[0] + "/webhook"}, {"new-test", "/dashboard/jobs/new"},
	} {
		for _, screen := range []struct {
			name       string
			wide, high int64
			dark       bool
		}{{"390-dark", 390, 844, true}, {"390", 390, 844, false}, {"1280-dark", 1280, 800, true}, {"1280", 1280, 800, false}} {
			tab.Screen(screen.wide, screen.high, screen.dark)
			tab.Open(w.Origin + page.path)
			tab.Shot("month-" + page.name + "-" + screen.name)
		}
		if high := browsertest.Eval[int64](tab, "document.documentElement.scrollHeight"); high > tallest {
			t.Errorf("%s is %d px high", page.name, high)
		}
	}
}
