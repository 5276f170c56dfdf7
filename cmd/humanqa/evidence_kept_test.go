package main

import (
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/httpapi/evidence"
	"humanqa/internal/testing/must"
)

// later moves the account's time, as a sandbox's clock does. What people tested is never a
// sandbox's, so no command moves it here. The account has no open test: its time limit would
// be by the other clock.
func (p *program) later(accountID string, days int) {
	p.t.Helper()
	cfg, err := service.ParseConfig(p.environ)
	must.NoError(p.t, err)
	core, err := service.Open(p.t.Context(), cfg, logging.New(cfg.LogFormat, cfg.LogLevel, io.Discard))
	must.NoError(p.t, err)
	defer func() { must.NoError(p.t, core.Close(p.t.Context())) }()
	stream, at := domain.AccountStream(accountID), domain.NoStream
	must.NoError(p.t, core.Log.Load(p.t.Context(), stream, 0, func(r domain.Recorded) error {
		at = domain.ExpectedRevision(r.Revision)
		return nil
	}))
	by := int64(days) * 86400
	written, err := core.Log.Append(p.t.Context(), stream, at, []domain.NewEvent{{
		ID: uuid.New(), Meta: domain.Metadata{Time: time.Now(), Actor: "operator"},
		Event: &account.ClockAdvanced{AdvanceID: uuid.NewString(), Seconds: by, OffsetSeconds: by},
	}})
	must.NoError(p.t, err)
	core.WaitVisible(p.t.Context(), written.Position)
}

// Decisions, "What is kept": what retention let go stays gone in a backup and in the place
// that is restored from it. Its links answer 410 there, what a hold keeps is served, and
// nothing is found to be wrong.
func TestWhatRetentionLetGoStaysGoneInARestoredPlace(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.start()
	c := &client{}
	c.account, c.key = p.newAccount(100)
	project := p.call(http.StatusCreated, "POST", "/v1/projects", c.key, map[string]any{"name": "Shop"}).text("projectId")
	gone, held := c.testsWithWords(p, project, "gone7f3a9c"), c.testsWithWords(p, project, "held51be02")
	picture := p.call(http.StatusOK, "GET", held.picture, "", nil).body
	p.cli(nil, "evidence", "hold", "--job", held.id, "--reason", "a lawsuit")
	p.cli(nil, "evidence", "keep", "--account", c.account, "--evidence-days", "30", "--reason", "less to keep")
	var swept evidence.Swept
	p.cli(&swept, "evidence", "sweep")
	if swept != (evidence.Swept{}) {
		t.Errorf("within the days %+v went", swept)
	}
	p.later(c.account, 31)
	p.cli(&swept, "evidence", "sweep")
	usage := func(p *program) (told struct{ Accounts []evidenceUsage }) {
		p.t.Helper()
		p.cli(&told, "evidence", "usage")
		return told
	}
	before := usage(p)
	if len(before.Accounts) != 1 || before.Accounts[0].Gone.Files != 1 || before.Accounts[0].Kept().Files != 1 || before.Accounts[0].Held().Files != 1 {
		t.Fatalf("after the sweep there is %+v", before)
	}
	files := countFiles(t, filepath.Join(p.dir, "evidence", c.account))
	refused := p.call(http.StatusGone, "GET", gone.picture, "", nil)

	file := filepath.Join(t.TempDir(), "backup.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	if made.Evidence != 1 || len(made.Missing) != 0 {
		t.Errorf("backup printed %+v, want the one picture that is kept", made)
	}
	s.stop()

	q := newEmbedded(t)
	q.restore(file, made.Events)
	again := q.start()
	if told := again.call(http.StatusGone, "GET", gone.picture, "", nil); told.text("goneAt") != refused.text("goneAt") || told.text("reason") != refused.text("reason") {
		t.Errorf("the link answers %s, and answered %s", told.body, refused.body)
	}
	if got := again.call(http.StatusOK, "GET", held.picture, "", nil).body; string(got) != string(picture) {
		t.Errorf("the picture that is held is %q", got)
	}
	report := again.call(http.StatusOK, "GET", "/v1/jobs/"+gone.id+"/report", c.key, nil)
	if list := report.list("noLongerKept"); len(list) != 1 {
		t.Errorf("the report says that %v is no longer kept", list)
	}
	q.cli(&swept, "evidence", "sweep")
	if after := usage(q); len(after.Accounts) != 1 || after.Accounts[0] != before.Accounts[0] || swept != (evidence.Swept{}) {
		t.Errorf("the restored place has %+v, and swept %+v", after, swept)
	}
	if n := countFiles(t, filepath.Join(q.dir, "evidence", c.account)); n != files || n == 0 {
		t.Errorf("%d files were restored, there were %d", n, files)
	}
	for _, args := range [][]string{{"fsck"}, {"audit", "verify"}} {
		if stdout, stderr, err := q.tryCLI(args...); err != nil {
			t.Errorf("%v: %v\n%s%s", args, err, stdout, stderr)
		}
	}
	again.stop()
}
