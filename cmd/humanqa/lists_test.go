package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// lists asks for everything there is of an account and a checker.
func (p *program) lists(account, key, checker, project string) {
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
		map[string]string{"name": "Shop"}).text("projectId")
	s.stop()

	// What a command writes while no service runs, the next one shows.
	var bound struct{ KeyID, APIKey string }
	p.cli(nil, "account", "suspend", "--account", box.AccountID)
	p.cli(&bound, "key", "create", "--account", account, "--project", project, "--scope", "read", "--expires", "24h")
	p.cli(nil, "key", "revoke", "--key", bound.KeyID)
	p.lists(account, key, checker, project)

	s = p.start()
	p.lists(account, key, checker, project)
	for _, args := range [][]string{
		{"account", "list"},
		{"key", "list", "--account", account},
		{"checker", "list"},
	} {
		for _, form := range [][]string{args, append([]string{"--json"}, args...)} {
			stdout, stderr, err := p.tryCLI(form...)
			if err != nil {
				t.Errorf("%v: %s", form, stderr)
			}
			for _, secret := range []string{key, bound.APIKey, checkerKey} {
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
	p.refuses("not found: check the id", "key", "list", "--account", "nobody")
	if _, stderr, err := p.tryCLI("key", "list", "--account", account, "--limit", "1001"); exitCode(err) != exitUsage || !strings.Contains(stderr, "--limit must be 1 to 1000") {
		t.Errorf("a page too large: %v %q", err, stderr)
	}
	s.stop()
}
