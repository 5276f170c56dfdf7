package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
)

// canary is in every word of a client: their texts, addresses, repository and token.
const canary = "canary5e1f"

// quote answers with everything that the request had: in place of a status at first, and
// in a refusal then.
func quote(w http.ResponseWriter, r *http.Request, body []byte, refuse bool) {
	all := fmt.Sprintf("%s %s %q", canary, r.URL, r.Header)
	if refuse {
		w.Header().Set("Content-Type", canary+"/"+canary)
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "%s %s", all, body)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\n%s: %s\r\n\r\n", all, canary, canary)
	_ = conn.Close() // the other side may have
}

// byDesign are the columns that keep a client's own words: those that they sent, that they are
// shown, and that their receiver answered. The log has the words of projects.
var byDesign = strings.Fields(`
	commit_statuses.commit_statuses.context commit_statuses.commit_statuses.ref commit_statuses.commit_statuses.repository
	eventlog.events.data events.account_events.data events.event_streams.about
	history.history_items.description history.history_items.expected_outcome history.history_projects.failures
	history.history_projects.name
	jobs.job_words.words jobs.jobs.ai_report jobs.jobs.description jobs.jobs.items jobs.jobs.questions jobs.jobs.report_summary
	jobs.jobs.title jobs.jobs.url
	mail.notices.project mail.notices.title mail.notices.verdict projects.projects.folded_name projects.projects.name projects.projects.webhook_url
	public.http_idempotency.key signin.invites.name
	webhooks.attempts.response webhooks.attempts.url webhooks.deliveries.body webhooks.endpoints.url`)

// Whatever the other sides of the service's calls answer, no error that is kept or logged
// quotes a client.
func TestNoErrorThatIsKeptOrLoggedQuotesAClient(t *testing.T) {
	t.Parallel()
	var asked sync.Map // paths
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a part is enough
		_, again := asked.LoadOrStore(r.URL.Path, true)
		quote(w, r, body, again)
	}))
	defer other.Close()
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	smtpd.Refuse(&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: canary + " is no word for a letter"})
	x := newStrangers(t)
	p := newProgram(t, append(x.settings(), "HUMANQA_GITHUB_API_URL="+other.URL, "HUMANQA_AI=openai", "HUMANQA_AI_BASE_URL="+other.URL,
		"HUMANQA_AI_MODEL=any", "HUMANQA_AI_KEY=any", "HUMANQA_SMTP_URL=smtp://"+smtpd.Address+"?starttls=off",
		"HUMANQA_SMTP_FROM=qa@qa.example", "HUMANQA_LOG_LEVEL=debug")...)
	s := p.start()
	db, err := pgpool.Open(t.Context(), p.dsn())
	must.NoError(t, err)
	defer func() { _ = db.Close() }()

	c := &client{}
	c.account, c.key = p.newAccount(100)
	var invited struct{ PersonID string }
	p.cli(&invited, "person", "invite", "--account", c.account, "--role", "owner", "--name", canary)
	c.person = invited.PersonID
	c.wantsMail(p)
	_, err = db.ExecContext(t.Context(), `UPDATE mail.choices SET questions = true`)
	must.NoError(t, err)
	project := p.newProject(c.key, x.URL+"/quotes?"+canary)
	// A name below Azure's that leads nowhere: the chat cannot be told.
	p.call(http.StatusOK, "PATCH", "/v1/projects/"+project, c.key, map[string]any{"chat": map[string]any{
		"url": "https://nowhere-of-humanqa.logic.azure.com/workflows/" + canary + "/triggers/manual/paths/invoke",
	}})
	w := &words{mark: canary}
	job := p.call(http.StatusCreated, "POST", "/v1/jobs", c.key, map[string]any{
		"projectId": project, "url": "https://" + canary + ".example.com/" + canary, "title": w.of("title"),
		"description": w.of("description"), "jobType": "Payment Flow", "accessInstructions": w.of("access"),
		"credentials":    map[string]any{"username": w.of("user"), "password": w.of("password")},
		"checklistItems": []any{map[string]any{"description": w.of("item"), "expectedOutcome": w.of("outcome")}},
		"commitStatus": map[string]any{
			"repository": "acme/" + canary, "commit": strings.Repeat("5e", 20), "ref": canary, "context": canary,
		},
	}, "X-Commit-Token", canary, "Idempotency-Key", "submit "+canary).text("jobId")
	_, checker := p.newChecker()
	claim := p.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": job})
	var list struct{ Checklist []struct{ ID string } }
	must.NoError(t, json.Unmarshal(claim.body, &list))
	send := func(status int, method, path string, body map[string]any) {
		p.call(status, method, "/v1/checker/jobs/"+job+path, checker, body, "X-Claim-Token", claim.text("claimToken"))
	}
	send(http.StatusCreated, "POST", "/questions", map[string]any{"kind": "other", "text": w.of("question")})
	count := func(query string) (n int) {
		must.NoError(t, db.GetContext(t.Context(), &n, query))
		return n
	}
	eventually.True(t, "the letter with the question is refused", func() bool {
		return count(`SELECT count(*) FROM mail.letters WHERE account_id IS NULL AND kind = 'question' AND last_error LIKE 'refused: %'`) == 1
	})
	eventually.True(t, "the chat is not told of the question", func() bool {
		return count(`SELECT count(*) FROM mail.letters WHERE account_id IS NOT NULL AND kind = 'question' AND last_error LIKE 'refused: reach the chat: %'`) == 1
	})
	send(http.StatusOK, "PUT", "/items/"+list.Checklist[0].ID, map[string]any{"status": "fail", "note": w.of("note")})
	send(http.StatusOK, "POST", "/complete", map[string]any{"summary": w.of("summary")})
	eventually.True(t, "the report is analysed without the model", func() bool {
		r, err := p.try("GET", "/v1/jobs/"+job+"/ai-report", c.key, nil)
		return err == nil && r.status == http.StatusOK
	})
	eventually.True(t, "the commit status is refused", func() bool {
		of, _ := p.call(http.StatusOK, "GET", "/v1/jobs/"+job, c.key, nil).field("commitStatus").(map[string]any)
		return of["error"] != nil
	})
	eventually.True(t, "deliveries fail", func() bool {
		return count(`SELECT count(*) FROM webhooks.deliveries WHERE last_error <> ''`) > 0
	})
	for column := range columnsWith(t, db, canary) {
		if !slices.Contains(byDesign, column) {
			t.Errorf("column %s quotes the client", column)
		}
	}
	if n := count(`SELECT count(*) FROM eventlog.events WHERE type NOT LIKE 'project.%' AND strpos(convert_from(data, 'UTF8'), '` + canary + `') > 0`); n > 0 {
		t.Errorf("%d events quote the client", n)
	}
	s.stop()
	for line := range strings.Lines(s.Said()) {
		if strings.Contains(line, canary) {
			t.Errorf("the service logs %s", line)
		}
	}
}

// columnsWith names the columns of all tables in which the word stands, as it is or in bytes; a
// read model's without its generation.
func columnsWith(t *testing.T, db *sqlx.DB, word string) map[string]bool {
	t.Helper()
	var tables []struct{ Schema, Name string }
	must.NoError(t, db.SelectContext(t.Context(), &tables, `
		SELECT schemaname AS schema, tablename AS name
		FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`))
	found := map[string]bool{}
	for _, table := range tables {
		var columns []string
		must.NoError(t, db.SelectContext(t.Context(), &columns, fmt.Sprintf(`
			SELECT DISTINCT c.key
			FROM %q.%q t, jsonb_each_text(to_jsonb(t)) c
			WHERE strpos(c.value, $1) > 0 OR strpos(c.value, $2) > 0`, table.Schema, table.Name), word, hex.EncodeToString([]byte(word))))
		schema, _, _ := strings.Cut(table.Schema, "_v")
		for _, column := range columns {
			found[schema+"."+table.Name+"."+column] = true
		}
	}
	if len(tables) < 20 {
		t.Fatalf("the tables are %v", slices.Collect(maps.Keys(found)))
	}
	return found
}
