package credential_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const good = "correct horse battery"

// world is a store whose clock stands still unless a test moves it.
type world struct {
	*credential.Store
	t     *testing.T
	db    *sqlx.DB
	start time.Time
	ahead atomic.Int64
	// may is what the log says that everybody may do.
	may func() ([]person.Grant, error)
}

var viewer = person.Grant{Role: person.Viewer, AccountID: "a1"}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.New(t), may: func() ([]person.Grant, error) { return []person.Grant{viewer}, nil }}
	w.start = time.Now()
	sealer, err := vault.Open(t.Context(), vault.Config{KeyFile: filepath.Join(t.TempDir(), "key"), DB: w.db})
	must.NoError(w.t, err)
	w.Store, err = credential.Open(credential.Config{
		Sealer: sealer,
		DB:     w.db, BaseURL: "http://127.0.0.1:8080", HashMemory: 64,
		Now:    w.now,
		Grants: func(context.Context, string) ([]person.Grant, error) { return w.may() },
	})
	must.NoError(w.t, err)
	return w
}

func (w *world) now() time.Time { return w.start.Add(time.Duration(w.ahead.Load())) }

func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) link(personID string) string {
	w.t.Helper()
	token, err := w.Invite(w.t.Context(), personID, "Ann", []person.Grant{viewer}, credential.LinkFor)
	must.NoError(w.t, err)
	return token
}

func ann() credential.Joining {
	return credential.Joining{Name: "Ann Example", Login: "Ann@Example.com", Password: good}
}

func (w *world) joined(personID string) {
	w.t.Helper()
	_, err := w.JoinWithPassword(w.t.Context(), w.link(personID), ann(), "1.2.3.4")
	must.NoError(w.t, err)
}

func paths(err error) (paths []string) {
	var e *domain.Error
	if errors.As(err, &e) {
		details, _ := e.Extras["details"].([]domain.Detail)
		for _, d := range details {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

func TestALinkIsSpentOnceHoweverManyTry(t *testing.T) {
	t.Parallel()
	w := setup(t)
	link := w.link("p1")
	if i, err := w.Invitation(t.Context(), link); err != nil || i.PersonID != "p1" || i.Name != "Ann" {
		t.Fatalf("the invitation is %+v, %v", i, err)
	}
	var good atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			switch id, err := w.JoinWithPassword(t.Context(), link, ann(), "1.2.3.4"); {
			case err == nil && id == "p1":
				good.Add(1)
			case !errors.Is(err, credential.ErrNoLink):
				t.Errorf("joined as %q, %v", id, err)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 {
		t.Errorf("the link was spent %d times", good.Load())
	}
	if _, err := w.Invitation(t.Context(), link); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("a spent link: %v", err)
	}
}

func TestLinksEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.link("p1")
	second := w.link("p1")
	if _, err := w.Invitation(t.Context(), first); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("with the next link: %v", err)
	}
	w.pass(credential.LinkFor)
	if _, err := w.JoinWithPassword(t.Context(), second, ann(), "1.2.3.4"); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("with time: %v", err)
	}
	if _, err := w.Invitation(t.Context(), "guess"); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("a guess: %v", err)
	}
}

// What a person can mend costs them no link.
func TestARefusedJoinLeavesTheLinkOpen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p0")
	link := w.link("p1")
	for _, c := range []struct {
		change func(*credential.Joining)
		paths  string
	}{
		{func(j *credential.Joining) { j.Password = "eleven char" }, "password"},
		{func(j *credential.Joining) { j.Password = strings.Repeat("x", 257) }, "password"},
		{func(j *credential.Joining) { j.Name, j.Login = " ", "a b c" }, "name login"},
		{func(j *credential.Joining) { j.Name = "An\x00n" }, "name"},
		{func(j *credential.Joining) { j.Login = "ab" }, "login"},
		{func(j *credential.Joining) { j.Login = " ANN@example.COM " }, "login"}, // taken
	} {
		in := ann()
		in.Login = "bob"
		c.change(&in)
		_, err := w.JoinWithPassword(t.Context(), link, in, "1.2.3.4")
		if got := strings.Join(paths(err), " "); got != c.paths {
			t.Errorf("%+v: %q, %v", in, got, err)
		}
	}
	in := ann()
	in.Login = "bob"
	if _, err := w.JoinWithPassword(t.Context(), link, in, "1.2.3.4"); err != nil {
		t.Error(err)
	}
}

func TestAPasswordSignsInWhoHasIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	if id, err := w.SignIn(t.Context(), " ann@EXAMPLE.com ", good, "1.2.3.4", ""); err != nil || id != "p1" {
		t.Errorf("signed in as %q, %v", id, err)
	}
	// Whatever is wrong, the answer is the same.
	for _, c := range [][2]string{
		{"ann@example.com", "wrong horse battery"}, {"bob@example.com", good}, {"", ""}, {"ann\x00", good}, {"\xff", strings.Repeat("x", 5000)},
	} {
		if id, err := w.SignIn(t.Context(), c[0], c[1], "1.2.3.4", ""); id != "" || !errors.Is(err, credential.ErrWrong) {
			t.Errorf("%q: signed in as %q, %v", c[0], id, err)
		}
	}
	must.NoError(w.t, w.ProvePassword(t.Context(), "p1", good, "1.2.3.4"))
	if err := w.ProvePassword(t.Context(), "p2", good, "1.2.3.4"); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("somebody else's password: %v", err)
	}
	var stored string
	byDefault, err := credential.Open(credential.Config{
		DB: w.db, Now: w.now, BaseURL: "http://127.0.0.1:8080",
		Grants: func(context.Context, string) ([]person.Grant, error) { return w.may() },
	})
	must.NoError(w.t, err)
	bob := ann()
	bob.Login = "bob"
	_, err = byDefault.JoinWithPassword(t.Context(), w.link("p2"), bob, "1.2.3.4")
	must.NoError(w.t, err)
	must.NoError(w.t, w.db.Get(&stored, `SELECT hash FROM signin.passwords WHERE person_id = 'p2'`))
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=65536,t=3,p=1$") || strings.Contains(stored, good) {
		t.Errorf("stored is %s", stored)
	}
}

func TestGuessesArePaused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	try := func(password string) error {
		_, err := w.SignIn(t.Context(), "ann@example.com", password, "1.2.3.4", "")
		return err
	}
	for range 5 {
		if err := try("wrong"); !errors.Is(err, credential.ErrWrong) {
			t.Fatal(err)
		}
	}
	// The right password waits as well: nobody learns that they have found it.
	if err := try(good); !domain.IsKind(err, domain.KindRateLimited) {
		t.Fatalf("the sixth at once: %v", err)
	}
	w.pass(2 * time.Second)
	if err := try("wrong"); !errors.Is(err, credential.ErrWrong) {
		t.Fatalf("after the pause: %v", err)
	}
	w.pass(time.Second)
	if err := try(good); !domain.IsKind(err, domain.KindRateLimited) {
		t.Fatalf("the next pause is no longer: %v", err)
	}
	w.pass(2 * time.Second)
	must.NoError(w.t, try(good))
	must.NoError(w.t, try(good)) // forgiven
}

func TestOneAddressCannotTryEveryName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.db.MustExec(`INSERT INTO signin.attempts VALUES ('address:6.6.6.6', 19, $1, $1)`, time.Now().Add(-time.Minute))
	if _, err := w.SignIn(t.Context(), "the-twentieth", "guess", "6.6.6.6", ""); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("the 20th name: %v", err)
	}
	if _, err := w.SignIn(t.Context(), "the-next", "guess", "6.6.6.6", ""); !domain.IsKind(err, domain.KindRateLimited) {
		t.Errorf("the 21st name: %v", err)
	}
	if _, err := w.SignIn(t.Context(), "other", "guess", "7.7.7.7", ""); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("another address: %v", err)
	}
}

// An office signs in from one address: those who know their password are no
// guesses, and clear nobody else's.
func TestWhoKnowsThePasswordIsNoGuessOfTheirAddress(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	w.db.MustExec(`INSERT INTO signin.attempts VALUES ('address:6.6.6.6', 18, $1, $1)`, time.Now().Add(-time.Minute))
	for range 4 {
		_, err := w.SignIn(t.Context(), "ann@example.com", good, "6.6.6.6", "")
		must.NoError(t, err)
	}
	for name, want := range map[string]bool{"the-nineteenth": true, "the-twentieth": true} {
		if _, err := w.SignIn(t.Context(), name, "guess", "6.6.6.6", ""); errors.Is(err, credential.ErrWrong) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.SignIn(t.Context(), "ann@example.com", good, "6.6.6.6", ""); !domain.IsKind(err, domain.KindRateLimited) {
		t.Errorf("after twenty guesses: %v", err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	begin := func(personID string) string {
		t.Helper()
		token, err := w.Begin(t.Context(), personID, "1.2.3.4", strings.Repeat("Mozilla\x00\xff", 100), "")
		must.NoError(w.t, err)
		return token
	}
	live := func(token string) bool {
		t.Helper()
		_, ok, err := w.Session(t.Context(), token)
		must.NoError(w.t, err)
		return ok
	}
	first, second, other := begin("p1"), begin("p1"), begin("p2")
	s, ok, err := w.Session(t.Context(), first)
	if err != nil || !ok || s.PersonID != "p1" || s.Address != "1.2.3.4" || len([]rune(s.Agent)) != 300 {
		t.Fatalf("the session is %+v, %v, %v", s, ok, err)
	}
	if live("guess") || live("") {
		t.Error("a guess is a session")
	}
	var kept string
	must.NoError(w.t, w.db.Get(&kept, `SELECT string_agg(s::text, ' ') FROM signin.sessions s`))
	if strings.Contains(kept, first) {
		t.Error("the token is stored in the clear")
	}

	list, err := w.Sessions(t.Context(), "p1")
	if err != nil || len(list) != 2 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	must.NoError(w.t, w.End(t.Context(), "p2", s.ID)) // not theirs
	if !live(first) {
		t.Error("somebody else ended the session")
	}
	must.NoError(w.t, w.EndOthers(t.Context(), "p1", s.ID))
	if !live(first) || live(second) || !live(other) {
		t.Error("ending the others ended the wrong ones")
	}
	must.NoError(w.t, w.End(t.Context(), "p1", s.ID))
	if live(first) {
		t.Error("an ended session lives")
	}

	t.Run("end with the next sign-in of their browser", func(t *testing.T) {
		here, there := begin("p3"), begin("p3")
		next, err := w.Begin(t.Context(), "p4", "1.2.3.4", "Firefox", here)
		must.NoError(w.t, err)
		if live(here) || !live(there) || !live(next) {
			t.Errorf("live are the one before %v, another browser's %v, the new one %v", live(here), live(there), live(next))
		}
	})
	t.Run("are fresh for a while after a proof", func(t *testing.T) {
		token := begin("p3")
		s, _, _ := w.Session(t.Context(), token)
		if !s.Fresh(s.CreatedAt) || s.Fresh(s.CreatedAt.Add(credential.FreshFor)) {
			t.Error("a session is fresh too long, or not at all")
		}
		w.pass(credential.FreshFor)
		must.NoError(w.t, w.Proved(t.Context(), s.ID))
		again, _, err := w.Session(t.Context(), token)
		if err != nil || !again.ProvedAt.After(s.ProvedAt) {
			t.Errorf("proved at %v, %v", again.ProvedAt, err)
		}
	})
	t.Run("end when nobody uses them, and after a month", func(t *testing.T) {
		idle, busy := begin("p4"), begin("p4")
		for range 5 {
			w.pass(5 * 24 * time.Hour)
			if !live(busy) {
				t.Fatal("a session in use ended early")
			}
		}
		if live(idle) {
			t.Error("an idle session lives")
		}
		w.pass(5 * 24 * time.Hour)
		if live(busy) {
			t.Error("a session outlives its month")
		}
		must.NoError(w.t, w.Sweep(t.Context()))
		var left int
		must.NoError(w.t, w.db.Get(&left, `SELECT COUNT(*) FROM signin.sessions`))
		if left != 0 {
			t.Errorf("%d sessions are left", left)
		}
	})
}

func TestALinkReplacesEveryEarlierWayIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	session, err := w.Begin(t.Context(), "p1", "", "", "")
	must.NoError(w.t, err)
	_, err = w.db.Exec(`INSERT INTO signin.passkeys VALUES ('\x01', 'p1', '{}', now(), now())`)
	must.NoError(w.t, err)
	link := w.link("p1")
	if _, err := w.SignIn(t.Context(), "ann@example.com", ann().Password, "1.1.1.1", ""); err != nil {
		t.Fatalf("a link that nobody used yet ended the password: %v", err)
	}
	again := credential.Joining{Name: "Ann", Login: "ann2", Password: "another long password"}
	if id, err := w.JoinWithPassword(t.Context(), link, again, "1.2.3.4"); err != nil || id != "p1" {
		t.Fatalf("%q, %v", id, err)
	}
	if _, live, err := w.Session(t.Context(), session); live || err != nil {
		t.Errorf("the session goes on: %v", err)
	}
	if has, err := w.HasPasskey(t.Context(), "p1"); has || err != nil {
		t.Errorf("the lost passkey still works: %v", err)
	}
	if _, err := w.SignIn(t.Context(), "ann@example.com", ann().Password, "1.1.1.2", ""); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("the old password still works: %v", err)
	}
	if id, err := w.SignIn(t.Context(), "ann2", again.Password, "1.1.1.3", ""); err != nil || id != "p1" {
		t.Errorf("the new password: %q, %v", id, err)
	}
}

func TestNamesAreErasable(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	w.link("p2")
	names, err := w.Names(t.Context(), "p1", "p2", "p3")
	if err != nil || len(names) != 2 || names["p1"].Name != "Ann Example" || *names["p1"].Login != "ann@example.com" || names["p2"].Name != "Ann" {
		t.Fatalf("%+v, %v", names, err)
	}
	_, err = w.Begin(t.Context(), "p1", "", "", "")
	must.NoError(w.t, err)
	_, err = w.Remember(t.Context(), "p1", "")
	must.NoError(w.t, err)
	must.NoError(w.t, w.Erase(t.Context(), "p1"))
	for _, table := range []string{"people", "passwords", "passkeys", "sessions", "devices"} {
		var left int
		must.NoError(w.t, w.db.Get(&left, `SELECT COUNT(*) FROM signin.`+table))
		if left != 0 {
			t.Errorf("%d rows are left in %s", left, table)
		}
	}
	if _, err := w.SignIn(t.Context(), "ann@example.com", good, "", ""); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("who was erased signs in: %v", err)
	}
}

func TestPasskeysAreBoundToOneName(t *testing.T) {
	t.Parallel()
	for base, hosts := range map[string]map[string]bool{
		"http://127.0.0.1:8080":  {"localhost:8080": true, "LOCALHOST": true, "127.0.0.1:8080": false, "evil.example": false},
		"https://qa.example":     {"qa.example": true, "localhost": false},
		"https://192.0.2.1:8443": {"192.0.2.1:8443": false, "localhost": false},
	} {
		s, err := credential.Open(credential.Config{Now: time.Now, BaseURL: base})
		must.NoError(t, err)
		for host, want := range hosts {
			if s.Passkeys(host) != want {
				t.Errorf("%s at %s: passkeys %v", base, host, !want)
			}
		}
	}
}

func TestAChallengeIsAnsweredOnceAndByWhatWasAsked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	link := w.link("p1")
	asked, err := w.AskToJoin(t.Context(), link, "Ann")
	must.NoError(w.t, err)
	for _, answer := range []string{"", "{}", `{"id":"x","rawId":"x","type":"public-key","response":{}}`} {
		if _, err := w.JoinWithPasskey(t.Context(), link, asked.Token, []byte(answer)); !errors.Is(err, credential.ErrWrong) && !domain.IsKind(err, domain.KindUnauthorized) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	in, err := w.AskToSignIn(t.Context())
	must.NoError(w.t, err)
	if _, err := w.JoinWithPasskey(t.Context(), link, in.Token, []byte("{}")); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("a sign-in's challenge joins: %v", err)
	}
	if _, err := w.SignInWithPasskey(t.Context(), asked.Token, []byte("{}")); !errors.Is(err, credential.ErrWrong) {
		t.Errorf("a spent challenge: %v", err)
	}
	if _, err := w.Invitation(t.Context(), link); err != nil {
		t.Errorf("a failed passkey cost the link: %v", err)
	}
	if _, err := w.AskToJoin(t.Context(), "guess", "Ann"); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("a guessed link: %v", err)
	}
	if err := w.End(t.Context(), "p1", uuid.New()); err != nil {
		t.Error(err)
	}
}
