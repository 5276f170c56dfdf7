package dashboard_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/httpapi/readers"
	"humanqa/internal/testing/pagetest"
)

// reads is a named reader that asked the feed once.
func (w *world) reads(n readers.Note) {
	w.T.Helper()
	w.Must(w.API.Readers.Admit(w.T.Context(), n.ID))
	w.API.Readers.Note(n)
	w.Must(w.API.Readers.Flush(w.T.Context()))
}

// The page of readers says where each is and what a refused one does next. The overview
// tells of those that stopped. Forgetting one takes it from the list.
func TestThePageOfReadersTellsOfThoseThatStopped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, other := w.account("Acme", 100), w.account("Globex", 0)
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Vic", person.Grant{Role: person.Viewer, AccountID: account})
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop & Co"})
	w.Shown(project.Position, err)
	w.test(account, "Buy", nil)
	const page = "/dashboard/readers"
	shows := func(as guest, path string, has bool, texts ...string) {
		t.Helper()
		got := w.Call(as, "GET", path, nil)
		for _, text := range texts {
			if got.Status != 200 || strings.Contains(got.Body, text) != has {
				t.Errorf("%s: %d, has %q: %t", path, got.Status, text, !has)
			}
		}
	}
	shows(dev, page, true, "No readers")
	shows(owner, "/dashboard/keys", true, `href="/dashboard/readers"`)
	shows(viewer, "/dashboard", false, `href="/dashboard/readers"`)

	w.reads(readers.Note{ID: readers.ID{AccountID: account, Name: "warehouse"}})
	w.reads(readers.Note{ID: readers.ID{AccountID: account, ProjectID: project.ProjectID, Name: "mirror"}, Types: []string{"job.failed"}})
	w.reads(readers.Note{ID: readers.ID{AccountID: other, Name: "strange"}, Refused: domain.CodeCursorGone})
	shows(dev, page, true, "<strong>warehouse</strong>", "<strong>mirror</strong>", "key of Shop &amp; Co", "Current", "1 minute</td>", "Forget this reader")
	shows(dev, page, false, "strange", "Behind</span>", "Refused")
	shows(dev, "/dashboard", false, "event reader")

	_, err = w.DB.ExecContext(t.Context(), "UPDATE readmodel.account_events SET time = time - interval '2 hours' WHERE account_id = $1", account)
	w.Must(err)
	shows(dev, page, true, "Behind</span>", "2 hours</td>")
	shows(dev, "/dashboard", true, "1 event reader behind: warehouse")
	shows(viewer, "/dashboard", false, "event reader behind")

	for code, next := range map[domain.Code]string{
		domain.CodeAnotherLog: "read from the beginning into an empty copy", domain.CodeCursorAhead: "beyond the end of the log",
		domain.CodeCursorGone: "no longer kept",
	} {
		w.reads(readers.Note{ID: readers.ID{AccountID: account, Name: "warehouse"}, Refused: code})
		shows(dev, page, true, "Refused</span>", next)
	}
	shows(dev, "/dashboard", true, "1 event reader refused: warehouse", "Broken")
	shows(dev, "/dashboard", false, "event reader behind")

	if got := w.Call(viewer, "POST", page+"/forget", pagetest.Form("name", "warehouse")); got.Status != 403 {
		t.Errorf("a viewer forgets a reader: %d", got.Status)
	}
	if got := w.Call(dev, "POST", page+"/forget", pagetest.Form("name", "strange")); got.Status != 404 {
		t.Errorf("a reader of another account: %d", got.Status)
	}
	if got := w.Call(dev, "POST", page+"/forget", pagetest.Form("name", "warehouse")); got.Status != 303 || got.Header.Get("Location") != page {
		t.Errorf("forgetting: %d %s", got.Status, got.Header.Get("Location"))
	}
	shows(dev, page, false, "warehouse")
	shows(dev, page, true, "<strong>mirror</strong>")
	shows(dev, "/dashboard", false, "event reader refused")
	found, err := w.API.Readers.Of(t.Context(), other, "")
	if err != nil || len(found) != 1 {
		t.Errorf("readers of the other account: %v %v", found, err)
	}
}
