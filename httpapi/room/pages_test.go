package room_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/session"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// settled waits until the session is there.
func (w world) settled(accountID, id string, status session.Status) {
	w.T.Helper()
	eventually.True(w.T, "the session is "+string(status), func() bool {
		s, err := w.Reads.Sessions.Session(w.T.Context(), accountID, id)
		return err == nil && s.Status == status
	})
}

// The room in each of its states, by both doors, on every screen: axe finds
// nothing, and nothing is wider than the screen.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	dev := w.Joined("Dev", person.Grant{Role: person.Developer, AccountID: account})
	parts := []string{"Caller", "Callee with a name that is rather long for a table", "Listener"}
	type open struct {
		id     string
		seats  []sits
		guests []guest
	}
	gathered := func(name string, here int) open {
		s := w.opened(account, parts...)
		o := open{id: s.SessionID}
		for n := range here {
			g, id := w.Checks(name + parts[n][:3])
			o.guests, o.seats = append(o.guests, g), append(o.seats, w.claimed(id, s.Slots[n].JobID))
		}
		return o
	}
	lobby, active, done, cancelled := gathered("l", 2), gathered("a", 3), gathered("d", 3), gathered("c", 1)
	lobby.seats[0].ready()
	for _, o := range []open{active, done} {
		for _, s := range o.seats {
			s.ready()
		}
		for n, g := range o.guests[:2] {
			if got := w.Call(g, "POST", "/workbench/sessions/"+o.id+"/marks", pagetest.Form("note", []string{"Rings twice, then it is silent for a while", ""}[n])); got.Status != 303 {
				t.Fatalf("a mark: %d", got.Status)
			}
		}
	}
	for n := range 3 {
		active.seats[0].says(n, []job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemSkip}[n], "It stays white.")
	}
	active.seats[1].says(0, job.ItemPass, "")
	for n, s := range done.seats {
		s.completes([]job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemPass}[n])
	}
	w.settled(account, done.id, session.StatusCompleted)
	out, err := w.Commands.CancelSession(t.Context(), pagetest.Client(account), cancelled.id)
	w.Shown(out.Position, err)

	watch, work := "/dashboard/sessions/", "/workbench/sessions/"
	w.Accessible(slices.Concat(
		lobby.guests[1].Sees("room-lobby", work+lobby.id), active.guests[0].Sees("room-active", work+active.id), done.guests[1].Sees("room-done", work+done.id),
		dev.Sees("room-lobby-watched", watch+lobby.id, "room-active-watched", watch+active.id, "room-done-watched", watch+done.id,
			"room-cancelled-watched", watch+cancelled.id),
	)...)
	t.Run("without a script", func(t *testing.T) {
		tab := w.in(t).Tab(active.guests[1])
		tab.NoScript()
		tab.Open(w.Origin + work + active.id)
		tab.Fill("#mark-note", "By hand")
		tab.Click("#mark .btn")
		tab.WaitText("By hand")
	})
	t.Run("M marks for all", func(t *testing.T) {
		here := w.in(t)
		tab, live := here.Tab(active.guests[0]), here.Tab(dev)
		live.Open(w.Origin + watch + active.id)
		tab.Open(w.Origin + work + active.id)
		tab.Wait(`document.getElementById('mark-key').checkVisibility()`)
		rows := func(tab *browsertest.Tab) int {
			return browsertest.Eval[int](tab, `document.querySelectorAll('.marks li').length`)
		}
		before := rows(tab)
		tab.Press("m")
		for _, each := range []*browsertest.Tab{tab, live} {
			each.Wait(fmt.Sprintf(`document.querySelectorAll('.marks li').length === %d`, before+1))
		}
		// What is typed is no mark, and goes along with the next one.
		browsertest.Eval[bool](tab, `(document.getElementById('mark-note').focus(), true)`)
		tab.Press("mmm")
		tab.Click("#mark-key") // off
		browsertest.Eval[bool](tab, `(document.activeElement.blur(), true)`)
		tab.Press("m")
		tab.Click("#mark-key") // on again
		browsertest.Eval[bool](tab, `(document.activeElement.blur(), true)`)
		tab.Press("m")
		live.WaitText("mmm")
		if got := rows(live); got != before+2 {
			t.Errorf("%d marks, want %d", got, before+2)
		}
		if got := browsertest.Eval[string](tab, `document.getElementById('mark-note').value`); got != "" {
			t.Errorf("the note stays: %q", got)
		}
		// What somebody else says comes by itself, and is what a reload shows.
		active.seats[1].says(1, job.ItemFail, "No sound.")
		for _, each := range []*browsertest.Tab{tab, live} {
			each.Wait(`document.querySelector('#slot-2 .far').innerText.startsWith('2 of')`)
		}
		shown := `document.querySelector('#room').innerText.replace(/\s+/g, ' ')`
		was := browsertest.Eval[string](live, shown)
		live.Open(w.Origin + watch + active.id)
		if is := browsertest.Eval[string](live, shown); is != was {
			t.Errorf("live it is\n%s\nand reloaded\n%s", was, is)
		}
		keyboard(t, tab)
	})
}

// keyboard walks the page by Tab: everything that can be pressed is reached, the
// focus can be seen, and it leaves the page again.
func keyboard(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	browsertest.Eval[bool](tab, `(document.activeElement.blur(), document.body.focus(), window.scrollTo(0, 0), delete window.reached)`)
	want := browsertest.Eval[int](tab, `[...document.querySelectorAll('#room a[href], #room button, #room input:not([type=hidden])')].filter(e => e.checkVisibility()).length`)
	reached := 0 // elements; the page may get rows meanwhile
	for range 60 {
		tab.Press(browsertest.TabKey)
		at := browsertest.Eval[string](tab, `(() => {
			const e = document.activeElement
			if (!e.closest('#room') || !e.matches('a, button, input')) return ''
			if (getComputedStyle(e).outlineStyle === 'none') return 'unseen ' + e.outerHTML
			window.reached = (window.reached ?? new Set()).add(e)
			return window.reached.size + ''
		})()`)
		if strings.HasPrefix(at, "unseen") {
			t.Errorf("the focus cannot be seen: %s", at)
		}
		if n, err := strconv.Atoi(at); err == nil {
			reached = n
		}
	}
	if reached != want {
		t.Errorf("Tab reaches %d of %d", reached, want)
	}
}
