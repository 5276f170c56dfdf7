package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// lists asks for everything there is of an account and a checker.
func (p *program) lists(account, key, checker, project, jobID string) {
	p.t.Helper()
	var accounts struct {
		Accounts []listedAccount
		Total    int
	}
	p.cli(&accounts, "account", "list")
	want := listedAccount{AccountID: account, Name: "Acme", Status: "active"}
	if accounts.Total != 2 || len(accounts.Accounts) != 2 || accounts.Accounts[0] != want {
		p.t.Errorf("account list printed %+v, want %+v and a sandbox", accounts, want)
	}
	p.cli(&accounts, "account", "list", "--limit", "1", "--offset", "1")
	if want := (listedAccount{AccountID: accounts.Accounts[0].AccountID, Name: "Box", Status: "suspended", Sandbox: true}); accounts.Total != 2 || len(accounts.Accounts) != 1 || accounts.Accounts[0] != want {
		p.t.Errorf("the second page is %+v, want %+v", accounts, want)
	}
	stdout, stderr, err := p.tryCLI("--json", "account", "show", "--account", account)
	if want := fmt.Sprintf(`{"accountId":%q,"name":"Acme","status":"active","sandbox":false,"available":45,"used":5,"total":50,"keys":2,"projects":1,"jobs":1}`+"\n", account); err != nil || stdout != want {
		p.t.Errorf("account show printed %s %s, want %s", stdout, stderr, want)
	}
	var keys struct {
		Keys  []listedKey
		Total int
	}
	p.cli(&keys, "key", "list", "--account", account)
	if keys.Total != 2 || keys.Keys[0].Status != "active" || keys.Keys[0].Hint != key[:12] || keys.Keys[1].Status != "revoked" ||
		keys.Keys[1].ProjectID == nil || *keys.Keys[1].ProjectID != project || keys.Keys[1].ExpiresAt == nil || keys.Keys[1].Scope != "read" {
		p.t.Errorf("key list printed %+v", keys)
	}
	var checkers struct {
		Checkers []listedChecker
		Total    int
	}
	p.cli(&checkers, "checker", "list")
	if want := []listedChecker{{CheckerID: checker, Name: "Ann", Accounts: []string{}}}; checkers.Total != 1 || !reflect.DeepEqual(checkers.Checkers, want) {
		p.t.Errorf("checker list printed %+v, want %+v", checkers, want)
	}
	var ofProjects struct {
		Projects []listedProject
		Total    int
	}
	p.cli(&ofProjects, "project", "list", "--account", account)
	if one := ofProjects.Projects; ofProjects.Total != 1 || one[0].ProjectID != project || one[0].Jobs != 1 || one[0].WebhookHost == nil || *one[0].WebhookHost != "hooks.example.com" {
		p.t.Errorf("project list printed %+v", ofProjects)
	}
	var ofJobs struct {
		Jobs  []listedJob
		Total int
	}
	p.cli(&ofJobs, "job", "list", "--account", account, "--status", "claimed", "--project", project)
	if one := ofJobs.Jobs; ofJobs.Total != 1 || one[0].JobID != jobID || one[0].Title != "Check the shop" || one[0].Status != "claimed" {
		p.t.Errorf("job list printed %+v", ofJobs)
	}
	p.cli(&ofJobs, "job", "list", "--account", account, "--status", "failed")
	if ofJobs.Total != 0 {
		p.t.Errorf("failed jobs are %+v", ofJobs)
	}
	var shown shownJob
	p.cli(&shown, "job", "show", "--job", jobID)
	if shown.JobID != jobID || shown.AccountID != account || shown.Items != 2 || shown.ItemsChecked != 0 || shown.ClaimedAt == nil || shown.CreditsUsed != 5 || shown.CompletedAt != nil {
		p.t.Errorf("job show printed %+v", shown)
	}
}

func TestTheListsShowWhatIsThereAndNoSecret(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.start()
	account, key := p.newAccount(50)
	var box struct{ AccountID string }
	p.cli(&box, "account", "create", "--name", "Box", "--sandbox")
	checker, checkerKey := p.newChecker()
	project := p.call(http.StatusCreated, "POST", "/v1/projects", key,
		map[string]string{"name": "Shop", "webhookUrl": "https://hooks.example.com/T0/B0/asecret"}).text("projectId")
	jobID := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(2, "projectId", project,
		"credentials", map[string]string{"username": "u", "password": "pass-word"})).text("jobId")
	p.call(http.StatusCreated, "POST", "/v1/checker/claims", checkerKey, map[string]string{"jobId": jobID})
	s.stop()

	// What a command writes while no service runs, the next one shows.
	var bound struct{ KeyID, APIKey string }
	p.cli(nil, "account", "suspend", "--account", box.AccountID)
	p.cli(&bound, "key", "create", "--account", account, "--project", project, "--scope", "read", "--expires", "24h")
	p.cli(nil, "key", "revoke", "--key", bound.KeyID)
	p.lists(account, key, checker, project, jobID)

	s = p.start()
	p.lists(account, key, checker, project, jobID)
	for _, args := range [][]string{
		{"account", "list"},
		{"account", "show", "--account", account},
		{"key", "list", "--account", account},
		{"checker", "list"},
		{"project", "list", "--account", account},
		{"job", "list", "--account", account},
		{"job", "show", "--job", jobID},
	} {
		for _, form := range [][]string{args, append([]string{"--json"}, args...)} {
			stdout, stderr, err := p.tryCLI(form...)
			if err != nil {
				t.Errorf("%v: %s", form, stderr)
			}
			for _, secret := range []string{key, bound.APIKey, checkerKey, "asecret", "pass-word", "whsec_"} {
				if strings.Contains(stdout, secret) {
					t.Errorf("%v shows %s: %s", form, secret, stdout)
				}
			}
			if form[0] == "--json" && !json.Valid([]byte(stdout)) {
				t.Errorf("%v is no JSON: %s", form, stdout)
			}
		}
	}
	if stdout, _, err := p.tryCLI("account", "list", "--limit", "1"); err != nil || !regexp.MustCompile(`^\S+  active     live     Acme\n1 to 1 of 2: --offset 1 goes on\n$`).MatchString(stdout) {
		t.Errorf("a page of accounts is %q, %v", stdout, err)
	}
	for _, args := range [][]string{
		{"account", "show", "--account", "nobody"},
		{"key", "list", "--account", "nobody"},
		{"project", "list", "--account", "nobody"},
		{"job", "list", "--account", "nobody"},
		{"job", "show", "--job", "nothing"},
	} {
		p.refuses("not found: check the id", args...)
	}
	if _, stderr, err := p.tryCLI("job", "list", "--account", account, "--limit", "1001"); exitCode(err) != exitUsage || !strings.Contains(stderr, "--limit must be 1 to 1000") {
		t.Errorf("a page too large: %v %q", err, stderr)
	}
	s.stop()
}
