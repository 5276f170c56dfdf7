package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/erase"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
)

// words are texts that a person has put somewhere, one for each field; each is found
// nowhere else.
type words struct {
	mark string
	all  []string
}

func (w *words) of(field string) string {
	word := "canary " + field + " of " + w.mark
	w.all = append(w.all, word)
	return word
}

// erasedJob is a test with words in every field that a person fills, and its picture.
type erasedJob struct {
	words
	id, checker, picture, question string
}

func (c *client) testsWithWords(p *program, project, mark string) *erasedJob {
	p.t.Helper()
	id, key := p.newChecker()
	return c.testsWithWordsBy(p, project, mark, checkedBy{id, key})
}

type checkedBy struct{ id, key string }

func (c *client) testsWithWordsBy(p *program, project, mark string, by checkedBy) *erasedJob {
	p.t.Helper()
	j := &erasedJob{words: words{mark: mark}}
	w := &j.words
	j.id = p.call(http.StatusCreated, "POST", "/v1/jobs", c.key, map[string]any{
		"projectId": project, "url": "https://example.com/" + strings.ReplaceAll(w.of("address"), " ", "-"), "title": w.of("title"),
		"description": w.of("description"), "jobType": "Payment Flow",
		"targetDevice": w.of("device"), "targetOS": w.of("system"), "targetBrowser": w.of("browser"), "targetScreenSize": w.of("screen"),
		"targetNetwork": w.of("network"), "accessInstructions": w.of("access"),
		"credentials":    map[string]any{"username": w.of("user"), "password": w.of("password"), "notes": w.of("login")},
		"checklistItems": []any{map[string]any{"description": w.of("item"), "expectedOutcome": w.of("outcome") + " \"<é>\"\n2"}},
	}, "Idempotency-Key", "submit "+mark).text("jobId")
	w.all[0] = strings.ReplaceAll(w.all[0], " ", "-") // as it stands in the address
	j.checker = by.key
	claim := p.call(http.StatusCreated, "POST", "/v1/checker/claims", j.checker, map[string]any{"jobId": j.id}, "Idempotency-Key", "claim "+mark)
	a := &album{load: &load{program: p}, checker: j.checker, pictures: map[string][]byte{}}
	a.upload(claim, []byte(filetest.PNG(w.of("picture"))))
	for j.picture = range a.pictures { // there is one
	}
	var list struct{ Checklist []struct{ ID string } }
	must.NoError(p.t, json.Unmarshal(claim.body, &list))
	base, token := "/v1/checker/jobs/"+j.id, claim.text("claimToken")
	send := func(status int, method, path string, body map[string]any) reply {
		return p.call(status, method, base+path, j.checker, body, "X-Claim-Token", token)
	}
	asked := send(http.StatusCreated, "POST", "/questions", map[string]any{"kind": "other", "text": w.of("question")})
	j.question = asked.text("questionId")
	p.call(http.StatusOK, "POST", "/v1/jobs/"+j.id+"/questions/"+j.question+"/answer", c.key,
		map[string]any{"text": w.of("answer"), "secret": w.of("secret")}, "Idempotency-Key", "answer "+mark)
	send(http.StatusOK, "PUT", "/items/"+list.Checklist[0].ID,
		map[string]any{"status": "fail", "note": w.of("note"), "screenshotUrl": p.url(j.picture)})
	send(http.StatusCreated, "POST", "/items", map[string]any{"description": w.of("finding"), "status": "fail", "note": w.of("comment")})
	send(http.StatusOK, "POST", "/complete", map[string]any{"summary": w.of("summary")})
	eventually.True(p.t, "the report is analysed", func() bool {
		r, err := p.try("GET", "/v1/jobs/"+j.id+"/ai-report", c.key, nil)
		return err == nil && r.status == http.StatusOK && strings.Contains(string(r.body), w.mark)
	})
	p.call(http.StatusOK, "POST", "/v1/jobs/"+j.id+"/rating", c.key, map[string]any{"rating": 4, "note": w.of("rating")})
	return j
}

var jobTitles = regexp.MustCompile(`"jobTitle":"[^"]*",`)

// figures are the reads that an erasure leaves as they are.
func (c *client) figures(p *program, project string) (all []string) {
	p.t.Helper()
	for _, path := range []string{"/v1/credits", "/v1/credits/ledger", "/v1/analytics/pass-rate?by=project"} {
		all = append(all, jobTitles.ReplaceAllString(string(p.call(http.StatusOK, "GET", path, c.key, nil).body), ""))
	}
	var history map[string]any
	must.NoError(p.t, json.Unmarshal(p.call(http.StatusOK, "GET", "/v1/projects/"+project+"/history", c.key, nil).body, &history))
	for _, field := range []string{"latestFailures", "preparedRegressions"} {
		delete(history, field)
	}
	left, err := json.Marshal(history)
	must.NoError(p.t, err)
	return append(all, string(left), p.exported("ledger", "--account", c.account))
}

// Decisions, "Erasure of one subject": a test is erased by a command that is cut off behind
// each of its steps, and repeated. None of its texts is anywhere, its figures stay, the
// log verifies, and another test of the account keeps everything.
func TestATestIsErasedHoweverOftenItIsCutOff(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t, "HUMANQA_SMTP_URL=smtp://127.0.0.1:1?starttls=off", "HUMANQA_SMTP_FROM=qa@qa.example") // nothing is there
	s := p.start()
	c := newClient(p, "Staying Ltd")
	project := p.call(http.StatusCreated, "POST", "/v1/projects", c.key,
		map[string]any{"name": "Erasures", "webhookUrl": "https://hooks.example.com/in"}).text("projectId")
	gone, stays := c.testsWithWords(p, project, "gone7f3a9c"), c.testsWithWords(p, project, "stays51be02")
	before := c.figures(p, project)
	kept := p.checkpoint(t)
	for word, in := range p.holding(t, gone.all...) { // the log never had them
		if slices.Contains(in, "eventlog") {
			t.Errorf("the log shows %q", word)
		}
	}
	p.refuses("job not found", "erase", "--job", "nobody", "--by", "Ann", "--reason", "asked for")
	if _, stderr, err := p.tryCLI("erase", "--job", gone.id, "--by", "Ann", "--reason", " "); exitCode(err) != exitUsage || !strings.Contains(stderr, "must not be blank") {
		t.Errorf("an erasure for no reason: %v %s", err, stderr)
	}
	var dry struct {
		Status string
		Plan   erase.Plan
		Search erase.Searched
	}
	p.cli(&dry, "erase", "--job", gone.id, "--dry-run")
	if dry.Plan.Texts < len(gone.all)-1 || dry.Plan.InClear != 0 || dry.Plan.Files != 1 || dry.Plan.Deliveries == 0 || len(dry.Search.Left) == 0 {
		t.Errorf("the dry run says %+v", dry)
	}
	s.stop()
	cutOffJob(t, p, gone.id)

	s = p.start()
	if stdout, _, err := p.tryCLI("fsck"); exitCode(err) != exitFailed || !strings.Contains(stdout, "run humanqa erase --job "+gone.id+" again") {
		t.Errorf("fsck does not tell of the erasure that was cut off: %v %s", err, stdout)
	}
	erasing := []string{"erase", "--job", gone.id, "--by", "Ann Operator", "--reason", "the customer asked for it"}
	for range 2 { // what is finished is finished
		dry.Search.Left = nil
		p.cli(&dry, erasing...)
		if dry.Status != "erased" || len(dry.Search.Left)+len(dry.Search.InClear) > 0 {
			t.Errorf("it says %+v", dry)
		}
	}
	if in := p.holding(t, gone.all...); len(in) > 0 {
		t.Errorf("words stand in %v", in)
	}
	if n := countFiles(t, filepath.Join(p.dir, "evidence", c.account, gone.id)); n != 0 {
		t.Errorf("%d files are left", n)
	}
	if r, err := p.try("GET", gone.picture, "", nil); err != nil || r.status != http.StatusNotFound {
		t.Errorf("the picture: %d %v", r.status, err)
	}
	p.call(http.StatusOK, "GET", stays.picture, "", nil)
	if after := c.figures(p, project); !slices.Equal(after, before) {
		t.Errorf("the figures are\n%s\nand were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	c.answersWithout(p, project, gone, stays)
	p.call(http.StatusConflict, "POST", "/v1/jobs/"+gone.id+"/retest", c.key, nil)
	p.call(http.StatusConflict, "POST", "/v1/jobs/"+gone.id+"/rating", c.key, map[string]any{"rating": 1, "note": "late"})
	story := ""
	for _, e := range p.replayed("job-" + gone.id) {
		story += e.Type + " " + string(e.Data) + "\n"
	}
	if strings.Count(story, "job.erased ") != 1 || !strings.Contains(story, `"by":"Ann Operator","reason":"the customer asked for it"`) || strings.Contains(story, gone.mark) {
		t.Errorf("the stream tells\n%s", story)
	}
	p.cli(nil, "projections", "rebuild", "--all")
	if in := p.holding(t, gone.all...); len(in) > 0 {
		t.Errorf("built anew, words stand in %v", in)
	}
	p.verifies(t, kept)
	p.fsck()
	restoredWithout(t, p, gone, stays, c.key)
	s.stop()
}

// restoredWithout looks into the next backup, and into what it is restored to.
func restoredWithout(t *testing.T, p *program, gone, stays *erasedJob, key string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	archive, err := zip.OpenReader(file)
	must.NoError(t, err)
	defer func() { _ = archive.Close() }()
	for _, entry := range archive.File {
		in, err := entry.Open()
		must.NoError(t, err)
		content, err := io.ReadAll(in)
		must.NoError(t, errors.Join(err, in.Close()))
		for _, word := range gone.all {
			if bytes.Contains(content, []byte(word)) {
				t.Errorf("%s of the backup has %q", entry.Name, word)
			}
		}
	}
	q := newEmbedded(t)
	q.restore(file, made.Events)
	s := q.start()
	if in := q.holding(t, gone.all...); len(in) > 0 {
		t.Errorf("restored, words stand in %v", in)
	}
	if got := s.call(http.StatusOK, "GET", "/v1/jobs/"+gone.id, key, nil).text("title"); got != domain.ErasedText {
		t.Errorf("restored, the erased test has the title %q", got)
	}
	if got := s.call(http.StatusOK, "GET", "/v1/jobs/"+stays.id, key, nil).text("title"); !strings.Contains(got, stays.mark) {
		t.Errorf("restored, the test that stays has the title %q", got)
	}
	q.fsck()
	s.stop()
}

// checkpoint keeps a signed checkpoint in a file.
func (p *program) checkpoint(t *testing.T) (file string) {
	t.Helper()
	var signed printedCheckpoint
	p.cli(&signed, "audit", "checkpoint")
	file = filepath.Join(t.TempDir(), "kept")
	must.NoError(t, os.WriteFile(file, []byte(signed.Note), 0o600))
	return file
}

// verifies holds the log against an earlier checkpoint.
func (p *program) verifies(t *testing.T, kept string) {
	t.Helper()
	var held verified
	p.cli(&held, "audit", "verify", "--against", kept)
	if len(held.Findings) != 0 {
		t.Errorf("the log does not verify: %+v", held)
	}
}

// answersWithout asks for everything that told of the test.
func (c *client) answersWithout(p *program, project string, gone, stays *erasedJob) {
	p.t.Helper()
	told := 0
	for _, path := range []string{
		"/v1/jobs", "/v1/jobs/ID", "/v1/jobs/ID/report", "/v1/jobs/ID/ai-report", "/v1/jobs/ID/events", "/v1/events?limit=100",
		"/v1/exports/jobs", "/v1/exports/items", "/v1/exports/events", "/v1/projects/" + project + "/history",
		"/v1/projects/" + project + "/open-failures", "/v1/projects/" + project + "/deliveries",
	} {
		r := p.call(http.StatusOK, "GET", strings.ReplaceAll(path, "ID", gone.id), c.key, nil)
		if strings.Contains(string(r.body), gone.mark) {
			p.t.Errorf("%s tells %s", path, r.body)
		}
		if strings.Contains(string(p.call(http.StatusOK, "GET", strings.ReplaceAll(path, "ID", stays.id), c.key, nil).body), stays.mark) {
			told++
		}
	}
	if told < 9 {
		p.t.Errorf("of the test that stays, %d answers tell", told)
	}
	var shown struct{ Title, URL, ErasedAt, Status string }
	must.NoError(p.t, json.Unmarshal(p.call(http.StatusOK, "GET", "/v1/jobs/"+gone.id, c.key, nil).body, &shown))
	if shown.Title != "[erased]" || shown.URL != "[erased]" || shown.ErasedAt == "" || shown.Status != "completed" {
		p.t.Errorf("it is shown as %+v", shown)
	}
	// A repeat finds no answer with texts any more, and charges nothing.
	r, err := p.try("POST", "/v1/jobs/"+gone.id+"/questions/"+gone.question+"/answer", c.key, map[string]any{
		"text": "canary answer of " + gone.mark, "secret": "canary secret of " + gone.mark,
	}, "Idempotency-Key", "answer "+gone.mark)
	if err != nil || strings.Contains(string(r.body), gone.mark) {
		p.t.Errorf("the repeated answer: %d %s, %v", r.status, r.body, err)
	}
}

// cutOffJob runs the erasure behind each of its steps into a crash, on the data of a
// service that is stopped.
func cutOffJob(t *testing.T, p *program, id string) {
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
	by, err := erase.Open(t.Context(), core, log, "Ann Operator", "the customer asked for it")
	must.NoError(t, err)
	defer by.Close()
	for end := 0; ; end++ {
		j, err := erase.NewJob(t.Context(), by, id)
		must.NoError(t, err)
		steps := j.Steps()
		if end == len(steps) {
			return
		}
		for n, step := range steps[:end+1] {
			if err := step(t.Context()); err != nil {
				t.Fatalf("step %d: %v", n, err)
			}
		}
	}
}

// holding is holding for the program's database.
func (p *program) holding(t *testing.T, texts ...string) map[string][]string {
	t.Helper()
	db, err := pgpool.Open(t.Context(), p.dsn())
	must.NoError(t, err)
	defer func() { _ = db.Close() }()
	return holding(t, db, texts...)
}
