package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/erase"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain/person"
	"humanqa/internal/mail"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/vault"
)

// Decisions, "Erasure": an account is erased by a command that is cut off behind
// each of its steps, and repeated. What can be erased is gone, what the account
// did is there and verifies, and nobody else notices.
func TestAnErasureEndsHoweverOftenItIsCutOff(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "HUMANQA_SMTP_URL=smtp://127.0.0.1:1?starttls=off", "HUMANQA_SMTP_FROM=qa@qa.example") // nothing is there
	s := p.start()
	gone, other := newClient(p, "Vanishing Ltd"), newClient(p, "Staying Ltd")
	var signed printedCheckpoint
	p.cli(&signed, "audit", "checkpoint")
	kept := filepath.Join(t.TempDir(), "kept")
	must.NoError(t, os.WriteFile(kept, []byte(signed.Note), 0o600))
	if _, stderr, err := p.tryCLI("account", "erase", "--account", gone.account, "--by", "Ann", "--reason", " "); exitCode(err) != exitUsage || !strings.Contains(stderr, "must not be blank") {
		t.Errorf("an erasure for no reason: %v %s", err, stderr)
	}
	p.refuses("account not found", "account", "erase", "--account", "nobody", "--by", "Ann", "--reason", "asked for")
	s.stop()

	eraseArgs := []string{"account", "erase", "--account", gone.account, "--by", "Ann Operator", "--reason", "the customer asked for it"}
	cutOff(t, p, gone, other)
	s = p.start()
	shown := func() (of listedAccount) {
		var list struct{ Accounts []listedAccount }
		p.cli(&list, "account", "list")
		for _, a := range list.Accounts {
			if a.AccountID == gone.account {
				of = a
			}
		}
		return of
	}
	if is := shown(); is.Status != "erasing" || is.Name != "(erased)" {
		t.Errorf("cut off, it is shown as %+v", is)
	}
	var said struct {
		Status string
		Erased int
	}
	for range 2 { // what is finished is finished
		if p.cli(&said, eraseArgs...); said.Status != "erased" {
			t.Errorf("erase printed %+v", said)
		}
	}
	if is := shown(); said.Erased != 0 || is.Status != "erased" {
		t.Errorf("erased %+v, shown as %+v", said, is)
	}

	p.call(http.StatusUnauthorized, "GET", "/v1/credits", gone.key, nil)
	p.refuses("the account was erased", "account", "reinstate", "--account", gone.account)
	p.refuses("the account was erased", "key", "create", "--account", gone.account)
	p.refuses("the account was erased", "credits", "grant", "--account", gone.account, "--amount", "5")
	p.refuses("the account was erased", "person", "invite", "--account", gone.account, "--role", "owner")
	if r, err := p.try("GET", gone.picture, "", nil); err != nil || r.status != http.StatusNotFound {
		t.Errorf("the picture: %d %v", r.status, err)
	}
	p.call(http.StatusOK, "GET", other.picture, "", nil)
	for _, c := range []struct {
		client *client
		files  int
	}{{gone, 0}, {other, 1}} {
		if n := countFiles(t, filepath.Join(p.dir, "evidence", c.client.account)); (n > 0) != (c.files > 0) {
			t.Errorf("%d files of evidence", n)
		}
	}
	keeps(t, p, gone, other)
	story := ""
	for _, e := range p.replayed("account-" + gone.account) {
		story += e.Type + " " + string(e.Data) + "\n"
	}
	for _, want := range []string{"account.key_revoked", `account.erased {"by":"Ann Operator","reason":"the customer asked for it"}`, "account.erasure_finished {}"} {
		if strings.Count(story, want) != 1 {
			t.Errorf("%q is told %d times:\n%s", want, strings.Count(story, want), story)
		}
	}

	// What it did is all there, and verifies; the other's secrets open.
	events := p.exported("events", "--account", gone.account)
	if n := strings.Count(events, `"credentials":"[erased]"`); n != 3 || strings.Contains(events, "[sealed]") {
		t.Errorf("%d credentials are told as erased:\n%s", n, events)
	}
	if events := p.exported("events", "--account", other.account); !strings.Contains(events, "[sealed]") || strings.Contains(events, "[erased]") {
		t.Errorf("the other account's events:\n%s", events)
	}
	ledger := p.exported("ledger", "--account", gone.account)
	if strings.Count(ledger, "debited") != 3 || strings.Count(ledger, "refunded") != 2 {
		t.Errorf("the ledger is\n%s", ledger)
	}
	if accounts := p.exported("accounts"); !strings.Contains(accounts, `"erased_by":"Ann Operator","erased_for":"the customer asked for it"`) {
		t.Errorf("the accounts are\n%s", accounts)
	}
	claim := p.call(http.StatusCreated, "POST", "/v1/checker/claims", other.checker, map[string]any{"jobId": other.pending})
	if !strings.Contains(string(claim.body), "hunter2") {
		t.Errorf("the other account's secret is gone: %s", claim.body)
	}
	var held verified
	p.cli(&held, "audit", "verify", "--against", kept)
	if len(held.Findings) != 0 {
		t.Errorf("the log does not verify: %+v", held)
	}
	p.fsck() // what the erased account's events refer to is gone on purpose
	p.findsLostRow()
	s.stop()
}

// headerCanary is the value of a header of each client's webhook: no table and no event holds it.
const headerCanary = "Bearer canary-77f0e1"

// client is an account with something of everything that is kept.
type client struct {
	name, account, key, checker, person string
	picture, pending                    string
}

func newClient(p *program, name string) *client {
	c := &client{name: name}
	var created struct{ AccountID, APIKey string }
	p.cli(&created, "account", "create", "--name", name, "--credits", "100")
	c.account, c.key = created.AccountID, created.APIKey
	_, c.checker = p.newChecker()
	c.wantsMail(p)
	project := p.call(http.StatusCreated, "POST", "/v1/projects", c.key, map[string]any{"name": "Shop", "webhookUrl": "https://hooks.example.com/in"}).text("projectId")
	p.call(http.StatusOK, "PATCH", "/v1/projects/"+project, c.key, map[string]any{"webhookHeaders": map[string]any{"Authorization": headerCanary}})
	submit := func(n int) string {
		return p.call(http.StatusCreated, "POST", "/v1/jobs", c.key, submission(1, "projectId", project,
			"credentials", map[string]any{"username": "shopper", "password": "hunter2"}), "Idempotency-Key", fmt.Sprint("k", n)).text("jobId")
	}
	tested, claimed := submit(1), submit(2)
	c.pending = submit(3)
	refused := make([]any, 20)
	for i := range refused {
		refused[i] = submission(1, "url", "https://refused.example/")
	}
	p.call(http.StatusPaymentRequired, "POST", "/v1/jobs/bulk", c.key, map[string]any{"jobs": refused}) // the stop records it
	claim := p.call(http.StatusCreated, "POST", "/v1/checker/claims", c.checker, map[string]any{"jobId": tested})
	a := &album{load: &load{program: p}, checker: c.checker, pictures: map[string][]byte{}}
	a.upload(claim, []byte(filetest.PNG(c.account)))
	for c.picture = range a.pictures { // there is one
	}
	var checklist struct{ Checklist []struct{ ID string } }
	must.NoError(p.t, json.Unmarshal(claim.body, &checklist))
	base, token := "/v1/checker/jobs/"+tested, claim.text("claimToken")
	p.call(http.StatusOK, "PUT", base+"/items/"+checklist.Checklist[0].ID, c.checker,
		map[string]any{"status": "pass", "screenshotUrl": p.url(c.picture)}, "X-Claim-Token", token)
	p.call(http.StatusOK, "POST", base+"/complete", c.checker, map[string]any{"summary": "fine"}, "X-Claim-Token", token)
	_, second := p.newChecker()
	p.call(http.StatusCreated, "POST", "/v1/checker/claims", second, map[string]any{"jobId": claimed})
	return c
}

// wantsMail gives the client an owner with an address that is confirmed.
func (c *client) wantsMail(p *program) {
	p.t.Helper()
	var invited struct{ PersonID string }
	p.cli(&invited, "person", "invite", "--account", c.account, "--role", "owner", "--name", "Olga Owner")
	c.person = invited.PersonID
	db, err := pgpool.Open(p.t.Context(), p.dsn())
	must.NoError(p.t, err)
	defer func() { _ = db.Close() }()
	must.NoError(p.t, mail.NewStore(db, time.Now, mailtest.Links()).Save(p.t.Context(), c.account, c.person, c.person+"@example.com",
		mail.Choices{Reports: mail.AllReports}))
	_, err = db.ExecContext(p.t.Context(), `UPDATE mail.people SET confirmed_at = now() - interval '1 minute' WHERE person_id = $1`, c.person)
	must.NoError(p.t, err)
}

// cutOff runs the erasure behind each of its steps into a crash, on the data of a
// service that is stopped. The other account's owner is a member of both.
func cutOff(t *testing.T, p *program, gone, other *client) {
	t.Helper()
	cfg, err := service.ParseConfig(p.environ)
	must.NoError(t, err)
	log := logging.New(cfg.LogFormat, cfg.LogLevel, io.Discard)
	core, err := service.Open(t.Context(), cfg, log)
	must.NoError(t, err)
	defer func() {
		if err := core.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = core.Commands.GrantRole(t.Context(), service.OperatorCause(gone.account), other.person, person.Grant{Role: person.Viewer, AccountID: gone.account})
	must.NoError(t, err)
	head, err := core.Log.Head(t.Context())
	must.NoError(t, err)
	must.NoError(t, core.CatchUp(t.Context(), log, head))
	read := &readTexts{Vault: core.Vault, streams: map[string]bool{}}
	core.Log.SealWith(read)
	by, err := erase.Open(t.Context(), core, log, "Ann Operator", "the customer asked for it")
	must.NoError(t, err)
	defer by.Close()
	e, err := erase.New(by, gone.account)
	must.NoError(t, err)
	for end := range e.Steps() {
		for _, step := range e.Steps()[:end+1] {
			if _, err := step(t.Context()); err != nil {
				t.Fatalf("step %d: %v", end, err)
			}
		}
	}
	if !read.streams["job-"+gone.pending] || read.streams["job-"+other.pending] {
		t.Errorf("an erasure reads the account's own jobs, and no others: it read %v", slices.Sorted(maps.Keys(read.streams)))
	}
}

// readTexts notes the streams whose events with texts are read from the log.
type readTexts struct {
	*vault.Vault

	mu      sync.Mutex
	streams map[string]bool
}

func (r *readTexts) OpenText(ctx context.Context, subject string, sealed []byte) ([]byte, error) {
	r.mu.Lock()
	r.streams[subject] = true
	r.mu.Unlock()
	return r.Vault.OpenText(ctx, subject, sealed)
}

// keeps counts the rows of either account outside the log.
func keeps(t *testing.T, p *program, gone, other *client) {
	t.Helper()
	db, err := pgpool.Open(t.Context(), p.dsn())
	must.NoError(t, err)
	defer func() { _ = db.Close() }()
	for query, want := range map[string][2]int{ // of the erased account, of the other
		`SELECT COUNT(*) FROM vault.data_keys WHERE account_id = $1 AND wrapped IS NOT NULL AND fingerprint IS NOT NULL AND $2 <> ''`:                                {0, 1},
		`SELECT COUNT(*) FROM vault.subject_keys WHERE subject = 'account-' || $1 AND wrapped IS NOT NULL AND $2 <> ''`:                                              {0, 1},
		`SELECT COUNT(*) FROM readmodel.account_events WHERE account_id = $1 AND data::text LIKE '%//refused.example%' AND $2 <> ''`:                                 {0, 1},
		`SELECT COUNT(*) FROM http_idempotency WHERE account_id = $1 AND $2 <> ''`:                                                                                   {0, 3},
		`SELECT COUNT(*) FROM http_key_uses WHERE account_id = $1 AND $2 <> ''`:                                                                                      {0, 1},
		`SELECT COUNT(*) FROM http_evidence WHERE account_id = $1 AND $2 <> ''`:                                                                                      {0, 1},
		`SELECT COUNT(*) FROM signin.invites WHERE person_id = $2 AND $1 <> ''`:                                                                                      {0, 1},
		`SELECT COUNT(*) FROM mail.choices c JOIN mail.people p USING (person_id) WHERE c.account_id = $1 AND c.person_id = $2`:                                      {0, 1},
		`SELECT COUNT(*) FROM webhooks.endpoints WHERE account_id = $1 AND (url <> '' OR secret <> '' OR headers <> '[]') AND $2 <> ''`:                              {0, 1},
		`SELECT COUNT(*) FROM readmodel.person_roles r JOIN readmodel.people p ON p.person_id = r.person_id AND NOT p.disabled WHERE r.account_id = $1 AND $2 <> ''`: {0, 1},
		`SELECT COUNT(*) FROM readmodel.api_keys WHERE account_id = $1 AND NOT revoked AND $2 <> ''`:                                                                 {0, 1},
		`SELECT COUNT(*) FROM readmodel.jobs WHERE account_id = $1 AND $2 <> ''`:                                                                                     {3, 3},
	} {
		for i, c := range []*client{gone, other} {
			var n int
			if err := db.GetContext(t.Context(), &n, query, c.account, c.person); err != nil || n != want[i] {
				t.Errorf("%d, want %d: %v: %s", n, want[i], err, query)
			}
		}
	}
	// The names are sealed in the log, and nowhere any more once their key is gone.
	held := holding(t, db, gone.name, other.name, headerCanary)
	if want := map[string][]string{other.name: {"access"}}; !reflect.DeepEqual(held, want) {
		t.Errorf("names stand in %v, want %v", held, want)
	}
	const notices = `SELECT COUNT(*) FROM mail.notices WHERE account_id = $1`
	eventually.True(t, "nothing is left to tell of the erased account, and of the other its report is", func() bool {
		var left, there int
		must.NoError(t, db.GetContext(t.Context(), &left, notices, gone.account))
		must.NoError(t, db.GetContext(t.Context(), &there, notices, other.account))
		return left == 0 && there == 1
	})
	const deliveries = `SELECT COUNT(*) FROM webhooks.deliveries d JOIN webhooks.endpoints e ON e.project_id = d.project_id WHERE e.account_id = $1`
	eventually.True(t, "nothing is left of the erased account's deliveries, and the other's are there", func() bool {
		var left, there int
		must.NoError(t, db.GetContext(t.Context(), &left, deliveries, gone.account))
		must.NoError(t, db.GetContext(t.Context(), &there, deliveries, other.account))
		return left == 0 && there > 0
	})
}

// exported is a table as lines of JSON.
func (p *program) exported(table string, args ...string) string {
	p.t.Helper()
	stdout, stderr, err := p.tryCLI(append([]string{"export", table}, args...)...)
	if err != nil {
		p.t.Fatalf("export %s: %v %s", table, err, stderr)
	}
	return stdout
}

// countFiles counts the files below a directory; none where there is no such
// directory.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	must.NoError(t, err)
	return n
}

// findsLostRow takes the row of a piece away that a report refers to, has fsck tell
// of it, and puts it back.
func (p *program) findsLostRow() {
	p.t.Helper()
	db, err := pgpool.Open(p.t.Context(), p.dsn())
	must.NoError(p.t, err)
	defer func() { _ = db.Close() }()
	var shown, jobID string
	const shownSQL = `
		SELECT e.id, e.job_id
		FROM http_evidence e
		JOIN readmodel.jobs r ON r.id = e.job_id AND r.items::text LIKE '%' || e.id || '%'
		LIMIT 1`
	must.NoError(p.t, db.QueryRowContext(p.t.Context(), shownSQL).Scan(&shown, &jobID))
	const set = `UPDATE http_evidence SET stored_at = CASE WHEN $2 THEN now() END WHERE id = $1`
	_, err = db.ExecContext(p.t.Context(), set, shown, false)
	must.NoError(p.t, err)
	stdout, _, err := p.tryCLI("fsck")
	if want := "job-" + jobID + ": an event refers to evidence " + shown + ", which has no row"; exitCode(err) != exitFailed || !strings.Contains(stdout, want) {
		p.t.Errorf("fsck: %v %q, want %q", err, stdout, want)
	}
	_, err = db.ExecContext(p.t.Context(), set, shown, true)
	must.NoError(p.t, err)
}

// holding lists, by text, the schemas in whose rows it stands, as it is or in bytes; a read
// model's is told as the read model. All texts are looked for in one pass.
func holding(t testing.TB, db *sqlx.DB, texts ...string) map[string][]string {
	t.Helper()
	var tables []struct{ Schema, Name string }
	must.NoError(t, db.SelectContext(t.Context(), &tables, `
		SELECT schemaname AS schema, quote_ident(schemaname) || '.' || quote_ident(tablename) AS name
		FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
		ORDER BY 1, 2`))
	if len(tables) < 20 {
		t.Fatalf("the tables are %v", tables)
	}
	schemas := map[string][]string{}
	for _, table := range tables {
		var found []string
		err := db.SelectContext(t.Context(), &found, `
			SELECT DISTINCT text
			FROM (SELECT t::text AS shown FROM `+table.Name+` t OFFSET 0) AS shown, unnest($1::text[]) AS text
			WHERE strpos(shown, text) > 0 OR strpos(shown, encode(convert_to(text, 'UTF8'), 'hex')) > 0`, pq.Array(texts))
		if gone := new(pq.Error); errors.As(err, &gone) && gone.Code.Name() == "undefined_table" {
			return holding(t, db, texts...) // the service has dropped an older generation: look at the newer one
		}
		must.NoError(t, err)
		schema, _, _ := strings.Cut(table.Schema, "_v") // of a read model's generation
		for _, text := range found {
			if !slices.Contains(schemas[text], schema) {
				schemas[text] = append(schemas[text], schema)
			}
		}
	}
	return schemas
}
