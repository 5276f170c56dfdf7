package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/internal/testing/must"
)

// limited is a second service that stands on the same parts with the limit as
// it is specified: another node.
func (s *service) limited(limit int) *service {
	node := *s
	node.deps.RateLimit = limit
	node.API = New(node.deps)
	return &node
}

// age lets time pass for the keys of the test's accounts.
func (s *service) age(by time.Duration) {
	s.t.Helper()
	for _, accountID := range s.parts.Accounts() {
		s.db.MustExec(`UPDATE http_rate SET slots = ARRAY(SELECT slot - $1 FROM unnest(slots) AS slot ORDER BY slot), at = at - $1
			WHERE starts_with(caller, 'key:' || $2 || '.')`, by.Microseconds(), accountID)
	}
}

// burst sends n requests at once, in turn over the nodes, and counts those
// that were admitted.
func burst(t *testing.T, n int, key string, nodes ...*service) (admitted int) {
	t.Helper()
	codes := make([]int, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { codes[i] = nodes[i%len(nodes)].call(key, "GET", "/v1/pricing", "").Code })
	}
	all.Wait()
	for _, code := range codes {
		switch code {
		case http.StatusOK:
			admitted++
		case http.StatusTooManyRequests:
		default:
			t.Errorf("got %d", code)
		}
	}
	return admitted
}

func TestNeverMoreThanSixtyInAnySixtySecondsOverTwoNodes(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(0)
	one, two := s.limited(0), s.limited(0)
	equal(t, burst(t, 200, key, one, two), 60)

	// The window slides: places come back when those who took them are a minute
	// old, not before, and the refused have taken none.
	sliding := s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
	const step = 12_100_000 // microseconds: five of them are longer than a minute
	var admitted []int
	var began, now int64
	for range 12 {
		must.NoError(t, s.db.Get(&now, `SELECT (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint`))
		// However long the burst before took, all of it was a step ago.
		s.db.MustExec(`UPDATE http_rate SET slots = ARRAY(SELECT LEAST(slot, $1) + $2 FROM unnest(slots) AS slot ORDER BY slot), at = $3
			WHERE starts_with(caller, 'key:' || $4 || '.')`, began, now-step-began, now, accountID)
		began = now
		admitted = append(admitted, burst(t, 30, sliding, one, two))
	}
	equal(t, admitted, []int{30, 30, 0, 0, 0, 30, 30, 0, 0, 0, 30, 30})
}

func TestTheSixtyFirstCallIsRefusedWhileAnotherKeyOfTheAccountWorks(t *testing.T) {
	t.Parallel()
	s := shared(t).limited(0)
	accountID, key := s.account(100)
	other := s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
	for left := 59; left >= 0; left-- {
		r := s.call(key, "GET", "/v1/credits", "")
		r.want(http.StatusOK)
		equal(t, r.Header().Get("X-RateLimit-Limit"), "60")
		equal(t, r.Header().Get("X-RateLimit-Remaining"), strconv.Itoa(left))
		if reset, err := strconv.Atoi(r.Header().Get("X-RateLimit-Reset")); err != nil || reset < 1 || reset > 60 {
			t.Fatalf("X-RateLimit-Reset is %q", r.Header().Get("X-RateLimit-Reset"))
		}
	}
	// Before anything else is looked at: the body, the path, the method.
	for _, call := range [][2]string{{"GET", "/v1/credits"}, {"POST", "/v1/jobs"}, {"GET", "/v1/nowhere"}, {"PUT", "/v1/jobs"}} {
		r := s.call(key, call[0], call[1], "{")
		r.refused(http.StatusTooManyRequests, domain.CodeRateLimited)
		equal(t, r.Header().Get("X-RateLimit-Remaining"), "0")
		equal(t, r.Header().Get("Retry-After"), r.Header().Get("X-RateLimit-Reset"))
	}
	s.call(other, "POST", "/v1/jobs", aJob).want(http.StatusCreated)

	// Retry-After keeps its word.
	wait, err := strconv.Atoi(s.call(key, "GET", "/v1/credits", "").Header().Get("Retry-After"))
	if err != nil || wait > 60 {
		t.Fatalf("Retry-After: %d %v", wait, err)
	}
	s.age(time.Duration(wait) * time.Second)
	s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)
}

func TestARefusedWriteOfAReadOnlyKeyTakesAPlaceAndA401TakesNone(t *testing.T) {
	t.Parallel()
	s := own(t).limited(3)
	accountID, key := s.account(0)
	readOnly := s.key(accountID, command.IssueKey{Scope: account.ScopeRead})
	for _, left := range []string{"2", "1"} {
		r := s.call(readOnly, "POST", "/v1/jobs", aJob)
		r.refused(http.StatusForbidden, domain.CodeForbidden)
		equal(t, r.Header().Get("X-RateLimit-Remaining"), left)
	}
	s.call(readOnly, "GET", "/v1/credits", "").want(http.StatusOK)
	s.call(readOnly, "GET", "/v1/credits", "").refused(http.StatusTooManyRequests, domain.CodeRateLimited)
	s.call(readOnly, "POST", "/v1/jobs", aJob).refused(http.StatusTooManyRequests, domain.CodeRateLimited)
	s.call("", "GET", "/v1/credits", "").refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)
}

func TestCheckersHaveAHigherLimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := shared(t).limited(0)
	ann, bob := s.checker(), s.checker()
	const path = "/v1/checker/claims"
	r := s.call(ann, "GET", path, "")
	r.want(http.StatusNoContent)
	equal(t, r.Header().Get("X-RateLimit-Limit"), "300")
	for range 299 {
		s.call(ann, "GET", path, "").want(http.StatusNoContent)
	}
	s.call(ann, "GET", path, "").refused(http.StatusTooManyRequests, domain.CodeRateLimited)
	s.call(bob, "GET", path, "").want(http.StatusNoContent)
}

func TestWhoGuessesCredentialsIsLimitedByAddress(t *testing.T) {
	t.Parallel()
	s := shared(t).limited(0)
	_, key := s.account(0)
	from := func(remote, key, target string) result {
		r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
		r.RemoteAddr = remote
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("X-Forwarded-For", uuid.NewString()) // anybody's claim
		r.Header.Set("Forwarded", "for="+uuid.NewString())
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		checkEnvelope(t, target, w)
		return result{w, t}
	}
	for range 60 {
		r := from("203.0.113.7:1000", uuid.NewString(), "/v1/credits")
		r.refused(http.StatusUnauthorized, domain.CodeUnauthorized)
		equal(t, r.Header().Get("X-RateLimit-Limit"), "60")
	}
	for _, remote := range []string{"203.0.113.7:1001", "[::ffff:203.0.113.7]:1"} {
		for _, target := range []string{"/v1/credits", "/v1/checker/queue", "/v1/nowhere"} {
			from(remote, uuid.NewString(), target).refused(http.StatusTooManyRequests, domain.CodeRateLimited)
		}
	}
	from("203.0.113.7:1002", key, "/v1/credits").want(http.StatusOK)
	from("203.0.113.8:1000", "x", "/v1/credits").refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	r := from("203.0.113.7:1003", "", "/healthz")
	r.want(http.StatusOK)
	equal(t, r.Header().Get("X-RateLimit-Limit"), "")
}

func TestADeployHookHasItsProjectsLimitAndAGuessThatOfItsAddress(t *testing.T) {
	t.Parallel()
	s := own(t).limited(2)
	_, key := s.account(100)
	one, two := s.hooked(key), s.hooked(key)
	deploy := func(token string) result { return s.call("", "POST", "/v1/hooks/deploy/"+token, "") }
	deploy(one).want(http.StatusCreated)
	deploy(one).want(http.StatusCreated)
	deploy(one).refused(http.StatusTooManyRequests, domain.CodeRateLimited)
	deploy(two).want(http.StatusCreated)
	deploy("guess1").refused(http.StatusNotFound, domain.CodeNotFound)
	deploy("guess2").refused(http.StatusNotFound, domain.CodeNotFound)
	deploy("guess3").refused(http.StatusTooManyRequests, domain.CodeRateLimited)
	deploy(two).want(http.StatusCreated)

	var stored int
	err := s.db.Get(&stored, `SELECT COUNT(*) FROM http_rate WHERE caller LIKE '%' || $1 || '%'`, one)
	if err != nil || stored != 0 {
		t.Errorf("%d rows hold the token, %v", stored, err)
	}
}

func TestAClockThatIsSetBackNeitherOpensNorCloses(t *testing.T) {
	t.Parallel()
	s := shared(t).limited(0)
	_, key := s.account(0)
	equal(t, burst(t, 60, key, s), 60)
	s.age(-time.Hour) // the times lie ahead now
	equal(t, burst(t, 10, key, s), 0)
	s.age(61 * time.Second)
	equal(t, burst(t, 100, key, s), 60)
}

func TestSilentCallersAreForgotten(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(0)
	s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)
	s.age(2 * time.Minute)
	s.call("nobody", "GET", "/v1/credits", "").refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	must.NoError(t, s.gate.Limits.Sweep(t.Context()))
	var callers []string
	must.NoError(t, s.db.Select(&callers, `SELECT caller FROM http_rate`))
	equal(t, strings.Join(callers, " "), "address:192.0.2.1")
}

func TestAKeyThatMayNotCallTakesNoPlaceHoweverManyAsk(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(0)
	end := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	ends := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ExpiresAt: &end})
	l := admit.NewLimiter(s.db, 4)
	take := func(token string, now time.Time, n int) (admitted, refused int) {
		keys, err := l.CountKeyRequests(t.Context(), domain.HashToken(token), now, n)
		must.NoError(t, err)
		for _, k := range keys {
			switch {
			case k.Refused != nil:
				refused++
			case k.Allowance.Admitted:
				admitted++
			}
		}
		return admitted, refused
	}
	places := func() (n int) {
		must.NoError(t, s.db.Get(&n, `SELECT coalesce(sum(cardinality(slots)), 0) FROM http_rate`))
		return n
	}
	for _, c := range []struct {
		what              string
		token             string
		now               time.Time
		n                 int
		admitted, refused int
	}{
		{"nobody's", "qa_live_nobody", time.Now(), 1, 0, 1},
		{"nobody's, thrice", "qa_live_nobody", time.Now(), 3, 0, 3},
		{"at its end", ends, end, 2, 0, 2},
		{"before its end", ends, end.Add(-time.Microsecond), 2, 2, 0},
		{"together", key, time.Now(), 3, 3, 0},
		{"more than there are", key, time.Now(), 3, 1, 0},
	} {
		before := places()
		admitted, refused := take(c.token, c.now, c.n)
		if admitted != c.admitted || refused != c.refused || places() != before+admitted {
			t.Errorf("%s: %d are admitted and %d refused, want %d and %d, and %d places are taken", c.what, admitted, refused, c.admitted, c.refused, places()-before)
		}
	}
	at, err := s.commands.SuspendAccount(t.Context(), operator(uuid.New()), accountID)
	s.visible(at, err)
	before := places()
	if admitted, refused := take(ends, time.Now(), 2); admitted != 0 || refused != 2 || places() != before {
		t.Errorf("suspended: %d are admitted and %d refused, %d places are taken", admitted, refused, places()-before)
	}
}

// A database that does not answer holds no request for longer than its look-up may take.
func TestAKeyThatIsNotFoundInTimeIsAnswered503(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(0)
	s.call(key, "GET", "/v1/pricing", "").want(http.StatusOK)
	tx := s.db.MustBegin()
	defer func() { _ = tx.Rollback() }() // it only holds the row
	tx.MustExec(`SELECT 1 FROM http_rate FOR UPDATE`)
	var both sync.WaitGroup
	for range 2 { // the second one waits for the look-up of the first one
		both.Go(func() {
			got := s.call(key, "GET", "/v1/pricing", "")
			if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
				t.Errorf("%d %s, Retry-After %q", got.Code, got.Body, got.Header().Get("Retry-After"))
			}
		})
	}
	both.Wait()
	must.NoError(t, tx.Rollback())
	s.call(key, "GET", "/v1/pricing", "").want(http.StatusOK)
}
