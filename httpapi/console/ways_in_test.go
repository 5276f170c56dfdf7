package console_test

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// live opens a stream; told waits for a line with that in it, and gives it.
func (w world) live(g guest) (told func(part string) string) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), eventually.Patience)
	w.T.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Origin+"/live", nil)
	w.Must(err)
	r.Header.Set("Cookie", pagetest.CookieName+"="+g.Token)
	answer, err := http.DefaultClient.Do(r)
	w.Must(err)
	w.T.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func(part string) string {
		w.T.Helper()
		for lines.Scan() {
			if line := lines.Text(); strings.Contains(line, part) {
				return line
			}
		}
		w.T.Fatalf("%q is not told: %v", part, lines.Err())
		return ""
	}
}

// Links and sign-ins, end to end: the console gives the roles, an account's owner makes
// the links.
func TestWaysIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account := w.operates("Olga"), w.Account("Acme", 100, false)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	password := []string{"password", "correct horse battery"}
	joining := func(login string) []string { return append([]string{"name", "Bob", "login", login}, password...) }

	t.Run("who kept a link is not what its person becomes", func(t *testing.T) {
		w := w.in(t)
		invitation := form("name", "Bob", "role", "viewer")
		link := func() string {
			t.Helper()
			made := w.Call(owner, "POST", "/dashboard/members", invitation)
			if made.Status != 200 {
				t.Fatalf("inviting: %d", made.Status)
			}
			return regexp.MustCompile(`/join/[^<"]+`).FindString(made.Body)
		}
		kept := link()
		members, err := w.Reads.People.Members(t.Context(), account)
		if err != nil || len(members) != 2 {
			t.Fatalf("%d members, %v", len(members), err)
		}
		bob := members[0].ID
		if bob == owner.ID {
			bob = members[1].ID
		}
		if got := w.Call(olga, "POST", "/console/people/"+bob+"/roles", form("role", "operator", "reason", "Joins us")); got.Status != 303 {
			t.Fatalf("giving a role: %d", got.Status)
		}
		again := link() // the owner's form, sent once more
		for name, link := range map[string]string{"the link of before": kept, "one that was made since": again} {
			if got := w.Call(guest{}, "GET", link, nil); got.Status != 404 {
				t.Errorf("%s shows %d", name, got.Status)
			}
			if got := w.Call(guest{}, "POST", link, form(joining("bob")...)); got.Status != 404 || got.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s lets somebody in: %d", name, got.Status)
			}
		}
		// The operator's own link is for both roles.
		made := w.Call(olga, "POST", "/console/people/"+bob+"/link", form("reason", "Joins us"))
		if got := w.Call(guest{}, "POST", regexp.MustCompile(`/join/[^<"]+`).FindString(made.Body), form(joining("bob")...)); got.Status != 303 {
			t.Errorf("the operator's link: %d %s", got.Status, got.Body)
		}
	})

	t.Run("an open stream follows what its person may do", func(t *testing.T) {
		w := w.in(t)
		other := w.Account("Globex", 100, false)
		dora := w.Joined("Dora", person.Grant{Role: person.Viewer, AccountID: account})
		give := person.Grant{Role: person.Viewer, AccountID: other}
		w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Operator(), dora.ID, give))
		told := w.live(dora)
		told("event: opened")
		w.test(other, "Seen")
		told("job-")
		w.Shown(w.Commands.RevokeRole(t.Context(), pagetest.Operator(), dora.ID, give))
		told("event: opened") // at once, not with the next look after the stream
		w.test(other, "Not seen")
		ours := w.test(account, "Seen, too")
		for line := told("data: "); !strings.Contains(line, ours); line = told("data: ") {
			if strings.Contains(line, "job-") {
				t.Fatalf("of an account that is no longer theirs: %s", line)
			}
		}
		w.Shown(w.Commands.DisablePerson(t.Context(), pagetest.Operator(), dora.ID, "Left"))
		told("event: ended")
	})

	t.Run("a sign-in ends the session before it and is remembered", func(t *testing.T) {
		w := w.in(t)
		_, link := w.Invited("Carol", person.Grant{Role: person.Viewer, AccountID: account})
		cookies := map[string]string{}
		browser := func(path string, fields ...string) int {
			t.Helper()
			var all []string
			for name, value := range cookies {
				all = append(all, name+"="+value)
			}
			got := w.Call(guest{}, "POST", path, form(fields...), "Cookie", strings.Join(all, "; "))
			for _, c := range (&http.Response{Header: got.Header}).Cookies() {
				if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" {
					t.Errorf("the cookie %+v", c)
				}
				cookies[c.Name] = c.Value
			}
			return got.Status
		}
		if got := browser(link, joining("carol")...); got != 303 {
			t.Fatalf("joining: %d", got)
		}
		first := guest{Token: cookies["__Host-humanqa"]}
		if got := w.Call(first, "GET", "/account", nil); got.Status != 200 {
			t.Fatalf("the first session: %d", got.Status)
		}
		for range 6 { // a stranger, who knows the name
			w.Call(guest{}, "POST", "/signin", form("login", "carol", "password", "guess"))
		}
		_, err := w.DB.ExecContext(t.Context(), // the pause is of two seconds, which a busy machine needs for an answer
			`UPDATE signin.attempts SET free_at = free_at + interval '1 hour' WHERE who LIKE 'login:%' AND free_at > last_at`)
		w.Must(err)
		if got := w.Call(guest{}, "POST", "/signin", form(append(password, "login", "carol")...)); got.Status != 429 {
			t.Fatalf("a stranger is not paused: %d", got.Status)
		}
		if got := browser("/signin", append(password, "login", "carol")...); got != 303 {
			t.Errorf("the owner's browser: %d", got)
		}
		second := guest{Token: cookies["__Host-humanqa"]}
		if got := w.Call(second, "GET", "/account", nil); got.Status != 200 {
			t.Errorf("the second session: %d", got.Status)
		}
		if got := w.Call(first, "GET", "/account", nil); got.Status != 303 {
			t.Errorf("the session before goes on: %d", got.Status)
		}
	})
}

// The session tells under which limit the request counts.
func TestOfARequestBeyondItsLimitOnlyTheSessionIsRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	oscar := w.operates("Oscar")
	w.Site.Admit = func(context.Context, string, int) (int, error) { return 7, nil }
	w.Site.People = nil // it is not asked
	for _, path := range []string{"/console", "/live"} {
		if got := w.Call(oscar, "GET", path, nil); got.Status != http.StatusTooManyRequests {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}
