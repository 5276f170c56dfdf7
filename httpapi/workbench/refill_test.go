package workbench_test

import (
	"strings"
	"testing"

	"humanqa/internal/testing/pagetest"
)

// A form of the bench that is refused comes back filled, its error stands at its field, and
// the field has the focus.
func TestARefusedFormOfTheBenchComesBackFilled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 100, false)
	ann, annID := w.Checks("Ann")
	id := w.test(account, "Sign-up", 2)
	c := w.claimed(annID, id)
	at := "/workbench/jobs/" + id
	back := []string{"Referer", w.Origin + at}

	got := w.Call(ann, "POST", at+"/findings", pagetest.Form("token", "1", "description", " ", "note", "half <b>written</b>", "severity", "minor",
		"key", "", "status", "fail"), back...)
	for _, want := range []string{"half &lt;b&gt;written&lt;/b&gt;", `id="description-refused">What you found is required.</p>`} {
		if got.Status != 422 || !strings.Contains(got.Body, want) {
			t.Errorf("a finding without words: %d, it lacks %s", got.Status, want)
		}
	}
	if strings.Count(got.Body, "autofocus") != 1 || !strings.Contains(got.Body, `<option selected>minor</option>`) {
		t.Error("the field has no focus, or the severity is lost")
	}
	item := c.Checklist[1].ID
	got = w.Call(ann, "POST", at+"/items/"+item, pagetest.Form("token", "1", "note", strings.Repeat("n", 2001), "severity", "major", "status", "fail"), back...)
	if got.Status != 422 || !strings.Contains(got.Body, `<textarea id="note-`+item+`" name="note" maxlength="2000" rows="2" aria-invalid="true" aria-describedby="note-refused" autofocus>nn`) ||
		!strings.Contains(got.Body, `id="note-refused">Notes must have at most 2000 characters`) ||
		!strings.Contains(got.Body, strings.Repeat("n", 2001)) || !strings.Contains(got.Body, `id="more-`+item+`" open`) {
		t.Errorf("notes that are too long: %d %s", got.Status, got.Body)
	}
	got = w.Call(ann, "POST", at+"/complete", pagetest.Form("token", "1", "summary", "All of it works."), back...)
	if got.Status != 409 || !strings.Contains(got.Body, "All of it works.") || !strings.Contains(got.Body, "2 items have no verdict yet.") {
		t.Errorf("completed too early: %d", got.Status)
	}
	// Where the browser does not name the page, it is the nearest above the form; a page
	// without the form leads to a refusal that names what is wrong.
	empty := pagetest.Form("token", "1", "description", "", "severity", "minor", "status", "fail")
	for _, c := range []struct {
		from []string
		want string
	}{{nil, "What you found is required.</p>"}, {[]string{"Referer", w.Origin + "/workbench/profile"}, "<li>Description is required.</li>"}} {
		if got = w.Call(ann, "POST", at+"/findings", empty, c.from...); got.Status != 422 || !strings.Contains(got.Body, c.want) {
			t.Errorf("from %v: %d %s", c.from, got.Status, got.Body)
		}
	}
	// A form that is taken says so on the next page.
	saved := w.Call(ann, "POST", at+"/items/"+item, pagetest.Form("token", "1", "note", "", "severity", "major", "status", "pass"), back...)
	if cookies := strings.Join(saved.Header.Values("Set-Cookie"), "\n"); saved.Status != 303 || !strings.Contains(cookies, "The+verdict+is+saved.") {
		t.Errorf("a verdict: %d %s", saved.Status, cookies)
	}
	quiet := w.Call(ann, "POST", at+"/items/"+item, pagetest.Form("token", "1", "note", "", "severity", "major", "status", "fail"), "Accept", "application/json")
	if cookies := quiet.Header.Values("Set-Cookie"); quiet.Status != 200 || len(cookies) > 0 {
		t.Errorf("the script shows a verdict by itself: %d %v", quiet.Status, cookies)
	}
}
