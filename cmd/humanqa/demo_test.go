package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/hqa/listen"
	"humanqa/internal/signature"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

func TestADemoWithoutAServiceSaysHowToStartOne(t *testing.T) {
	t.Parallel()
	if _, stderr, err := newEmbedded(t).tryCLI("demo"); exitCode(err) != exitFailed || !strings.Contains(stderr, "make run") {
		t.Errorf("a demo without a service: %v %q", err, stderr)
	}
}

func demoStory(t *testing.T, p *instance) {
	stdout, stderr, err := p.tryCLI("demo")
	if err != nil {
		t.Fatalf("demo: %v %s\n%s", err, stderr, stdout)
	}
	for _, want := range []string{
		"1000 available", "5 credits were deducted",
		"webhook job.created arrived, signature verified", "webhook job.claimed arrived, signature verified",
		"webhook job.completed arrived, signature verified", "FAIL: ", "995 available", "replay job-", "http://localhost:",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the demo does not say %q:\n%s", want, stdout)
		}
	}
	for _, secret := range []string{"whsec_", "a demo password", "qa_live_", "qc_"} {
		if strings.Contains(stdout, secret) {
			t.Errorf("the demo shows %q:\n%s", secret, stdout)
		}
	}

	var again told
	p.cli(&again, "demo")
	want := told{
		ProjectID: again.ProjectID, JobID: again.JobID, ReportID: again.ReportID,
		OverallStatus: "fail", CreditsBefore: 995, CreditsAfter: 990,
		Webhooks:   []string{"job.created", "job.claimed", "job.completed"},
		ReportPage: "http://localhost" + p.addr[strings.LastIndex(p.addr, ":"):] + "/dashboard/jobs/" + again.JobID,
	}
	if !reflect.DeepEqual(again, want) || again.ReportID == "" {
		t.Errorf("told %+v, want %+v", again, want)
	}
}

// A demo that was cut off leaves its checker with a job, and they may have only
// one.
func demoCutOff(t *testing.T, p *instance) {
	d, err := service.ReadDemo(p.dir)
	must.NoError(t, err)
	p.call(http.StatusCreated, "POST", "/v1/jobs", d.APIKey, submission(1))
	p.call(http.StatusCreated, "POST", "/v1/checker/claims", d.CheckerKey, map[string]string{})
	if stdout, stderr, err := p.tryCLI("demo"); err != nil || !strings.Contains(stdout, "another one steps in") {
		t.Errorf("demo: %v %s\n%s", err, stderr, stdout)
	}
}

func TestListenPrintsAndVerifiesWhatArrives(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	secretFile := filepath.Join(t.TempDir(), "secret")
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	cmd := p.command(ctx, "listen", "--json", "--dir", t.TempDir(), "--secret-file", secretFile)
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func(into any) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("listen ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), into); err != nil {
			t.Fatalf("listen printed %q: %v", lines.Text(), err)
		}
	}
	var at struct{ URL, CAFile string }
	next(&at)
	pem, err := os.ReadFile(at.CAFile)
	must.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	post := func(secret string) int {
		t.Helper()
		body := []byte(`{"event":"job.created"}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL, bytes.NewReader(body))
		must.NoError(t, err)
		req.Header.Set(signature.EventHeader, "job.created")
		req.Header.Set(signature.DeliveryHeader, "d-1")
		req.Header.Set(signature.SignatureHeader, signature.Of([]byte(secret), body))
		res, err := client.Do(req)
		must.NoError(t, err)
		must.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	want := listen.Heard{Type: "delivery", Event: "job.created", DeliveryID: "d-1", Answered: http.StatusNoContent, Body: json.RawMessage(`{"event":"job.created"}`)}
	expect := func(status, wantStatus int, want listen.Heard) {
		t.Helper()
		var got listen.Heard
		next(&got)
		if status != wantStatus || !reflect.DeepEqual(got, want) {
			t.Errorf("%d %+v, want %d %+v", status, got, wantStatus, want)
		}
	}
	expect(post("right"), http.StatusNoContent, want) // the secret is not known yet

	must.NoError(t, os.WriteFile(secretFile, []byte("right\n"), 0o600))
	verified := want
	verified.Verified = true
	expect(post("right"), http.StatusNoContent, verified)
	refused := want
	refused.Problem, refused.Answered = signature.ErrMismatch.Error(), 0
	expect(post("wrong"), http.StatusUnauthorized, refused)

	must.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("listen: %v", err)
	}
}
