package console_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/retention"
	"humanqa/internal/testing/pagetest"
)

// measured inserts evidence of the job, so many bytes of it, as an upload leaves it.
func (w world) measured(accountID, jobID string, size int, recording bool) {
	w.T.Helper()
	id := uuid.NewString()
	_, err := w.DB.ExecContext(w.T.Context(), `
INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
VALUES ($1::uuid, $2, $3, 'ann', decode(md5($1::uuid::text), 'hex'), 'image/png', $4, now(), now())`, id, accountID, jobID, size)
	w.Must(err)
	if recording {
		_, err = w.DB.ExecContext(w.T.Context(), `
INSERT INTO http_recordings (id, account_id, job_id, checker_id, claim_token, content_type, size, parts, started_at, due_at, attached_at)
VALUES ($1, $2, $3, 'ann', 1, 'video/webm', $4, 1, now(), now(), now())`, id, accountID, jobID, size)
		w.Must(err)
	}
}

// An operator sees the bytes of evidence by account and kind, and what goes within a
// month. A hold that they place and release with a reason is written down as their act, and
// keeps the evidence meanwhile.
func TestAnOperatorHoldsEvidence(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga := w.operates("Olga")
	account, other := w.Account("Acme", 500, false), w.Account("Globex", 500, false)
	owner := w.Joined("Owen", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "top-secret project"})
	w.Shown(project.Position, err)
	jobID := w.test(account, "top-secret title")
	days := 10
	_, at, err := w.Commands.SetAccountRetention(t.Context(), pagetest.Client(account), retention.Change{
		Evidence: retention.Setting{Set: true, Value: &days},
	})
	w.Shown(at, err)
	cancelled, err := w.Commands.CancelJob(t.Context(), pagetest.Client(account), jobID, "client")
	w.Shown(cancelled.Position, err)
	w.measured(account, jobID, 1_500_000, false)
	w.measured(account, jobID, 3_000_000_000, true)
	w.measured(other, w.test(other, "top-secret"), 700, false)
	const page = "/console/evidence"
	row := func(id string) string {
		t.Helper()
		body := w.has(olga, page)
		if strings.Contains(body, "top-secret") {
			t.Error("the page tells what a client wrote")
		}
		_, row, _ := strings.Cut(body, `id="`+id+`"`)
		row, _, _ = strings.Cut(row, "</tr>")
		return row
	}
	cells := func(account string, texts ...string) {
		t.Helper()
		got := row("evidence-" + account)
		for _, text := range texts {
			before, after, found := strings.Cut(got, `nowrap">`+text+`</td>`)
			if !found {
				t.Fatalf("no %s in %s", text, got)
			}
			_, got = before, after
		}
	}
	cells(account, "1.5 MB", "3.0 GB", "0 bytes", "3.0 GB", "0 bytes")
	cells(other, "700 bytes", "0 bytes", "0 bytes", "0 bytes", "0 bytes")
	w.has(olga, page, "No holds")

	for kind, id := range map[string]string{retention.OfJob: jobID, retention.OfProject: project.ProjectID, retention.OfAccount: account} {
		send := func(path string, status int, pairs ...string) {
			t.Helper()
			if got := w.Call(olga, "POST", page+path, form(pairs...)); got.Status != status {
				t.Errorf("%s %s with %q: %d", kind, path, pairs, got.Status)
			}
		}
		send("/hold", 422, "kind", kind, "id", id)
		send("/hold", 404, "kind", kind, "id", uuid.NewString(), "reason", "Lawsuit")
		send("/hold", 303, "kind", kind, "id", id, "reason", "Lawsuit 12/34 over "+kind)
		if got := row("hold-" + id); !strings.Contains(got, "Olga") || !strings.Contains(got, "Lawsuit 12/34 over "+kind) || !strings.Contains(got, "Acme") {
			t.Errorf("the hold on the %s is %s", kind, got)
		}
		if kind != retention.OfProject { // the job is of no project
			cells(account, "1.5 MB", "3.0 GB", "3.0 GB", "0 bytes", "0 bytes")
		}
		if got := w.Call(owner, "POST", "/dashboard/evidence/release", url.Values{"kind": {kind}, "id": {id}, "reason": {"We want it back"}}); got.Status != 403 {
			t.Errorf("the client releases an operator's hold: %d", got.Status)
		}
		send("/release", 422, "hold", kind+"-"+id)
		send("/release", 303, "hold", kind+"-"+id, "reason", "It is settled")
		w.has(olga, page, "No holds")
		cells(account, "1.5 MB", "3.0 GB", "0 bytes", "3.0 GB", "0 bytes")
		w.has(olga, "/console/acts?act="+string(oversight.PlaceHold), "Lawsuit 12/34 over "+kind, "placed a hold on")
		w.has(olga, "/console/acts?act="+string(oversight.ReleaseHold), "It is settled", "released the hold on")
	}

	// The reason of a client's hold is the client's.
	if got := w.Call(owner, "POST", "/dashboard/evidence/hold", url.Values{"kind": {"job"}, "id": {jobID}, "reason": {"top-secret lawsuit"}}); got.Status != 303 {
		t.Fatalf("the client's hold: %d", got.Status)
	}
	if got := row("hold-" + jobID); !strings.Contains(got, "the client") {
		t.Errorf("the client's hold is %s", got)
	}
	for _, link := range []string{"/console/accounts/" + account, "/console/jobs/" + jobID} {
		w.has(olga, link, `href="/console/evidence?kind=`)
	}
	w.has(olga, page+"?kind=project&id="+project.ProjectID, `value="`+project.ProjectID+`"`, `<option value="project" selected>`)
}
