package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"humanqa/eventstore"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

var clientsDir = flag.String("clients", "", "the folder of others' clients, installed; see make contract")

// What is not ours reads what we wrote: the log by an official client in Node, as
// a user who may read and not append, and exports by readers of Parquet and CSV.
func TestOthersReadWhatWeWrote(t *testing.T) {
	t.Parallel()
	if *clientsDir == "" {
		t.Skip("make contract runs it")
	}
	process.Build(t, "humanqa-parquet")
	address := process.Address(t)
	p := newProgram(t, "HUMANQA_EVENTSTORE_LISTEN="+address)
	p.refuses("has not served "+address+" yet", "eventstore", "reader")
	s := p.start()
	account, key := p.newAccount(1000)
	_, checker := p.newChecker()
	const tests = 4
	for n := range tests {
		extra := []any{"title", []string{"=1+1", "a \"quoted\",\ntwo-line title", "é 測試", "plain"}[n]}
		jobID := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(3, extra...)).text("jobId")
		claim := p.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": jobID})
		token, base := claim.text("claimToken"), "/v1/checker/jobs/"+jobID
		for i, item := range claim.list("checklist") {
			id, _ := item.(map[string]any)["id"].(string)
			verdict := map[string]any{"status": []string{"pass", "fail", "pass"}[i]}
			p.call(http.StatusOK, "PUT", base+"/items/"+id, checker, verdict, "X-Claim-Token", token)
		}
		p.call(http.StatusOK, "POST", base+"/complete", checker, map[string]any{"summary": "done"}, "X-Claim-Token", token)
	}

	t.Run("the log by Node and Go", func(t *testing.T) {
		var reader struct{ URL string }
		p.cli(&reader, "eventstore", "reader")
		type days struct{ Days map[string]map[string]int }
		var byNode, byGo days
		inNode(t, &byNode, "verdicts.mjs", reader.URL)
		printed, err := exec.CommandContext(t.Context(), "go", "run", "../../tools/clients/verdicts.go", reader.URL).Output()
		must.NoError(t, err)
		must.NoError(t, json.Unmarshal(printed, &byGo))
		for _, told := range []days{byNode, byGo} {
			sum := map[string]int{}
			for _, counts := range told.Days {
				for verdict, n := range counts {
					sum[verdict] += n
				}
			}
			if fmt.Sprint(sum) != fmt.Sprint(map[string]int{"pass": 2 * tests, "fail": tests}) {
				t.Errorf("got %v", told)
			}
		}
		silent, _ := test.NewNullLogger()
		log, err := eventstore.Open(reader.URL, silent)
		must.NoError(t, err)
		defer func() { _ = log.Close() }()
		var denied []string
		for _, f := range log.Inspect(t.Context()) {
			if !f.OK {
				denied = append(denied, f.What)
				if !strings.Contains(f.Detail, "Access Denied") {
					t.Errorf("got %+v", f)
				}
			}
		}
		if want := "append, set metadata"; strings.Join(denied, ", ") != want {
			t.Errorf("denied are %v, want %s", denied, want)
		}
	})

	t.Run("exports by others' readers", func(t *testing.T) {
		credits := p.call(http.StatusOK, "GET", "/v1/credits", key, nil)
		used, available := credits.number("used"), credits.number("available")
		listed := p.call(http.StatusOK, "GET", "/v1/jobs?limit=100", key, nil).number("total")
		dir := t.TempDir()
		var files []string
		want := map[string][2]int{} // rows, and the sum of the column
		for table, of := range map[string]struct {
			column    string
			rows, sum int
		}{
			"jobs": {"credits_used", listed, used}, "ledger": {"change", 1 + tests, available}, "items": {"place", 3 * tests, 6 * tests},
		} {
			for _, format := range []string{"parquet", "csv"} {
				file := filepath.Join(dir, table+"."+format)
				p.cli(nil, "export", table, "--format", format, "--account", account, "--out", file)
				files = append(files, file+":"+of.column)
				want[file] = [2]int{of.rows, of.sum}
			}
		}
		if listed != tests || used != 5*tests || available != 1000-used {
			t.Errorf("the API tells of %d jobs, %d credits used, %d left", listed, used, available)
		}
		read := map[string]struct {
			Rows, Sum int
			Columns   map[string]string
		}{}
		inNode(t, &read, "totals.mjs", files...)
		for file, is := range read {
			if is.Rows != want[file][0] || is.Sum != want[file][1] {
				t.Errorf("%s: %d rows, sum %d, want %v", filepath.Base(file), is.Rows, is.Sum, want[file])
			}
		}
		columns := read[filepath.Join(dir, "jobs.parquet")].Columns
		for column, kind := range map[string]string{"job_id": "STRING", "urgent": "BOOLEAN", "credits_used": "INTEGER", "created_at": "TIMESTAMP"} {
			if columns[column] != kind {
				t.Errorf("%s is read as %s", column, columns[column])
			}
		}
	})
	s.stop()
}

// standardDelivery is a delivery as it arrived, with the secrets that have to verify it and those
// that must not.
type standardDelivery struct {
	Event   string            `json:"event"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Secrets []string          `json:"secrets"`
	Others  []string          `json:"others"`
}

// The official libraries of Standard Webhooks verify what the service sends: under a secret that it
// made, under one of the client's own, and under both secrets of a rotation.
func officialLibraries(t *testing.T, p *instance) {
	key, project, url, arrived := p.newReceived(t)
	var made struct{ WebhookSecret string }
	p.cli(&made, "project", "secret", "--project", project)
	const own = "a secret of the client's own, in 32 to 256 characters"
	submit := func(project string) {
		p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1, "projectId", project))
	}

	var all []standardDelivery
	take := func(secrets, others []string) {
		t.Helper()
		select {
		case r := <-arrived:
			d := standardDelivery{Event: r.Event, Headers: map[string]string{}, Body: string(r.Body), Secrets: secrets, Others: others}
			for name := range r.Header {
				d.Headers[strings.ToLower(name)] = r.Header.Get(name)
			}
			all = append(all, d)
		case <-time.After(eventually.Patience):
			t.Fatal("no delivery came")
		}
	}
	submit(project)
	take([]string{made.WebhookSecret}, []string{own})
	p.call(http.StatusCreated, "POST", "/v1/hosted/test", key, map[string]any{
		"url": "https://own.example.com", "feature": "Checkout", "webhookUrl": url, "webhookSecret": own,
	})
	take([]string{own}, []string{made.WebhookSecret})
	rotated := p.call(http.StatusOK, "POST", "/v1/projects/"+project+"/webhook/rotate-secret", key, nil).text("webhookSecret")
	submit(project)
	take([]string{made.WebhookSecret, rotated}, []string{own})
	p.call(http.StatusOK, "POST", "/v1/projects/"+project+"/webhook/rotate-secret", key, map[string]any{"finish": true})
	p.call(http.StatusAccepted, "POST", "/v1/projects/"+project+"/webhook/test", key, nil)
	take([]string{rotated}, []string{made.WebhookSecret})

	verified, refused := 0, 0
	for _, d := range all {
		header := http.Header{}
		for name, value := range d.Headers {
			header.Set(name, value)
		}
		verify := func(secret, body string) error {
			hook, err := standardwebhooks.NewWebhook(secret)
			if !strings.HasPrefix(secret, "whsec_") {
				hook, err = standardwebhooks.NewWebhookRaw([]byte(secret))
			}
			must.NoError(t, err)
			return hook.Verify([]byte(body), header)
		}
		for _, secret := range d.Secrets {
			verified++
			if err := verify(secret, d.Body); err != nil {
				t.Errorf("Go: %s: %v", d.Event, err)
			}
			refused++
			if verify(secret, d.Body+" ") == nil {
				t.Errorf("Go: %s verifies with another body", d.Event)
			}
		}
		for _, secret := range d.Others {
			refused++
			if verify(secret, d.Body) == nil {
				t.Errorf("Go: %s verifies with another secret", d.Event)
			}
		}
	}
	if *clientsDir == "" {
		return // make contract runs what follows
	}
	raw, err := json.Marshal(all)
	must.NoError(t, err)
	file := filepath.Join(t.TempDir(), "deliveries.json")
	must.NoError(t, os.WriteFile(file, raw, 0o600))
	var told struct {
		Verified, Refused int
		Wrong             []string
	}
	inNode(t, &told, "deliveries.mjs", file)
	if told.Verified != verified || told.Refused != refused || len(told.Wrong) > 0 {
		t.Errorf("JavaScript: %+v, want %d verified and %d refused", told, verified, refused)
	}
}

// inNode runs a script beside the installed clients and decodes what it prints.
func inNode(t *testing.T, out any, script string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "node", append([]string{script}, args...)...)
	cmd.Dir = *clientsDir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s%s", script, err, printed, stderr.Bytes())
	}
	if err := json.Unmarshal(printed, out); err != nil {
		t.Fatalf("node %s printed %q: %v", script, printed, err)
	}
}
