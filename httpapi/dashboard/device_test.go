package dashboard_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/person"
)

// A command line begins a sign-in, an owner confirms its code, and the key comes once.
func TestACommandLineGetsItsKeyByACodeThatAnOwnerConfirms(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	developer := w.Joined("Dan", person.Grant{Role: person.Developer, AccountID: account})
	ask := func(path, body string) (status int, out map[string]any) {
		t.Helper()
		got := w.Send(guest{}, "POST", path, strings.NewReader(body), "Content-Type", "application/json")
		w.Must(json.Unmarshal([]byte(got.Body), &out))
		return got.Status, out
	}
	begin := func(client string) (device, user string) {
		t.Helper()
		raw, err := json.Marshal(map[string]string{"client": client})
		w.Must(err)
		status, out := ask("/v1/device", string(raw))
		device, _ = out["deviceCode"].(string)
		user, _ = out["userCode"].(string)
		if status != 201 || out["verificationUrl"] != w.BaseURL+"/dashboard/device?code="+user {
			t.Fatalf("begun: %d %v", status, out)
		}
		return device, user
	}
	collect := func(device string) (int, map[string]any) {
		t.Helper()
		return ask("/v1/device/token", `{"deviceCode": "`+device+`"}`)
	}

	device, user := begin("<b>hqa</b>")
	if status, out := collect(device); status != 202 || out["status"] != "pending" {
		t.Errorf("before an answer: %d %v", status, out)
	}
	if got := w.Call(developer, "GET", "/dashboard/device?code="+user, nil); got.Status == 200 {
		t.Error("a developer is asked")
	}
	page := w.Call(owner, "GET", "/dashboard/device?code="+strings.ToLower(strings.Replace(user, "-", "+", 1)), nil)
	if page.Status != 200 || !strings.Contains(page.Body, user) || !strings.Contains(page.Body, "&lt;b&gt;hqa") {
		t.Errorf("the page: %d\n%s", page.Status, page.Body)
	}
	form := url.Values{"code": {user}, "answer": {"confirm"}, "scope": {"read"}, "days": {"30"}}
	if got := w.Call(developer, "POST", "/dashboard/device", form); got.Status == 303 && strings.Contains(got.Header.Get("Location"), "confirmed") {
		t.Error("a developer confirmed it")
	}
	for _, days := range []string{"0", "-1", "3651", "soon"} { // none of them is a key without an end
		wrong := url.Values{"code": {user}, "answer": {"confirm"}, "scope": {"read"}, "days": {days}, "command": {uuid.NewString()}}
		for _, path := range []string{"/dashboard/device", "/dashboard/keys"} {
			if got := w.Call(owner, "POST", path, wrong); got.Status != 422 {
				t.Errorf("%q days on %s: %d", days, path, got.Status)
			}
		}
	}
	if got := w.Call(owner, "POST", "/dashboard/device", form); got.Status != 303 || got.Header.Get("Location") != "/dashboard/device?done=confirmed" {
		t.Errorf("confirmed: %d %s", got.Status, got.Header.Get("Location"))
	}
	if got := w.Call(owner, "POST", "/dashboard/device", url.Values{"code": {user}, "answer": {"deny"}}); got.Status != 404 {
		t.Errorf("a second answer: %d", got.Status)
	}
	status, out := collect(device)
	key, _ := out["apiKey"].(string)
	if status != 200 || out["accountId"] != account || key == "" {
		t.Fatalf("collected: %d %v", status, out)
	}
	if got := w.Send(guest{}, "GET", "/v1/credits", nil, "Authorization", "Bearer "+key); got.Status != 200 {
		t.Errorf("the key: %d", got.Status)
	}
	if got := w.Send(guest{}, "POST", "/v1/projects", strings.NewReader(`{"name": "P"}`), "Authorization", "Bearer "+key); got.Status != 403 {
		t.Errorf("a read-only key writes: %d", got.Status)
	}
	if status, _ := collect(device); status != 404 {
		t.Errorf("collected twice: %d", status)
	}

	device, user = begin("")
	if got := w.Call(owner, "POST", "/dashboard/device", url.Values{"code": {user}, "answer": {"deny"}}); got.Status != 303 {
		t.Errorf("denied: %d", got.Status)
	}
	if status, _ := collect(device); status != 403 {
		t.Errorf("collected after a denial: %d", status)
	}

	device, user = begin("late")
	if _, err := w.DB.ExecContext(t.Context(), `UPDATE signin.client_logins SET expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	if status, _ := collect(device); status != 404 {
		t.Errorf("collected late: %d", status)
	}
	if got := w.Call(owner, "GET", "/dashboard/device?code="+user, nil); !strings.Contains(got.Body, "No sign-in waits") {
		t.Error("a late code is asked for")
	}
	if status, _ := ask("/v1/device/token", `{}`); status != 400 {
		t.Errorf("without a code: %d", status)
	}
	begin("one more") // and what is over is swept
	var left int
	w.Must(w.DB.GetContext(t.Context(), &left, `SELECT count(*) FROM signin.client_logins`))
	if left != 1 {
		t.Errorf("%d sign-ins are kept", left)
	}
}
