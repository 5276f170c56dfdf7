package main

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service"
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
