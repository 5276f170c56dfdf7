package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"humanqa/internal/testing/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(m.Run)) }

// A click ends on the page that it leads to, once that page is loaded: what a test asks for
// then is not asked of the page before, which may say the same. A file to save, another
// window and a script leave the tab where it is.
func TestAClickWaitsForThePageThatItLeadsTo(t *testing.T) {
	t.Parallel()
	// Whoever does not wait sees the page before, or half of the page.
	moment := func(r *http.Request) {
		if r.URL.Path != "/" {
			time.Sleep(300 * time.Millisecond)
		}
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		moment(r)
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.Method == http.MethodPost:
			http.Redirect(w, r, "/sent", http.StatusSeeOther)
			return
		case r.URL.Path == "/file":
			w.Header().Set("Content-Disposition", "attachment; filename=a.html")
		}
		_, _ = fmt.Fprint(w, `<link rel=icon href=data:,><a id=link href=/page>a</a> <a id=file href=/file>b</a>
			<a id=window href=/window target=_blank>c</a> <a id=place href=#there>d</a> <button id=script onclick="document.title = 'did'">e</button>
			<form method=post><input name=text><button id=send>f</button></form>`)
		_ = http.NewResponseController(w).Flush()
		moment(r)
		_, _ = fmt.Fprint(w, "<p id=end>The end</p>")
	}))
	t.Cleanup(served.Close)
	tab := browsertest.New(t)
	for _, c := range []struct{ on, leads string }{
		{"#link", "/page"}, {"#send", "/sent"}, {"#file", "/"}, {"#window", "/"}, {"#place", "/"}, {"#script", "/"},
	} {
		tab.Open(served.URL)
		tab.Click(c.on)
		is := browsertest.Eval[string](tab, `location.pathname + (document.querySelector('#end') ? '' : ', half of it')`)
		if is != c.leads {
			t.Errorf("after a click on %s the tab shows %s, want %s", c.on, is, c.leads)
		}
	}
	tab.Open(served.URL)
	tab.Fill("input", "x")
	tab.Press(browsertest.Enter)
	if is := browsertest.Eval[string](tab, `location.pathname`); is != "/sent" {
		t.Errorf("after Enter in a form the tab shows %s", is)
	}
}
