package dashboard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/retention"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/webmtest"
	"humanqa/projections/jobs"
)

var aPNG = filetest.PNG("")

// filmed is a job that a person tested, with a picture of a failure and a recording.
func (w *world) filmed(accountID string) jobs.Job {
	w.T.Helper()
	checker, err := w.Commands.CreateChecker(w.T.Context(), pagetest.Operator(), "ann", nil)
	w.Shown(checker.Position, err)
	id := w.test(accountID, "Checkout", nil)
	c := w.claims(checker.CheckerID, id)
	send := func(method, path, contentType string, body io.Reader, field string, headers ...string) string {
		w.T.Helper()
		headers = append(headers, "Authorization", "Bearer "+checker.Token, "X-Claim-Token", strconv.Itoa(c.Claim.Token), "Content-Type", contentType)
		got := w.Send(guest{}, method, "/v1/checker/jobs/"+id+path, body, headers...)
		var answer map[string]any
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.Status >= 300 {
			w.T.Fatalf("%s %s: %d %s", method, path, got.Status, got.Body)
		}
		text, _ := answer[field].(string)
		return text
	}
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	file, err := parts.CreateFormFile("file", "shot.png")
	w.Must(err)
	_, err = io.WriteString(file, aPNG)
	w.Must(err)
	w.Must(parts.Close())
	const asJSON = "application/json"
	shot := send("POST", "/evidence", parts.FormDataContentType(), &form, "url")
	send("PUT", "/items/"+c.Checklist[0].ID, asJSON, strings.NewReader(fmt.Sprintf(`{"status":"fail","note":"White.","screenshotUrl":%q}`, shot)), "")
	film := send("POST", "/recordings", asJSON, strings.NewReader(`{"startedMsAgo":1500}`), "recordingId")
	send("PATCH", "/recordings/"+film, "application/octet-stream", bytes.NewReader(webmtest.Film{Seconds: 6, Frame: 300}.Bytes()), "", "Upload-Offset", "0")
	send("POST", "/recordings/"+film+"/finish", asJSON, nil, "")
	c.checks(1, job.ItemPass, "")
	c.checks(2, job.ItemPass, "")
	c.completes("It breaks.")
	var j jobs.Job
	eventually.True(w.T, "the recording is there", func() bool {
		j, err = w.Reads.Jobs.Job(w.T.Context(), accountID, id)
		return err == nil && len(j.Recordings) == 1
	})
	return j
}

// later moves the account's time and lets go what is due. What people tested is never a
// sandbox's, so no command moves it here.
func (w *world) later(accountID string, days int) {
	w.T.Helper()
	by := int64(days) * 86400
	var revision uint64
	w.Must(w.Log.Load(w.T.Context(), domain.AccountStream(accountID), 0, func(e domain.Recorded) error { revision = e.Revision; return nil }))
	written, err := w.Log.Append(w.T.Context(), domain.AccountStream(accountID), domain.ExpectedRevision(revision), []domain.NewEvent{{
		ID: uuid.New(), Meta: domain.Metadata{Time: time.Now(), Actor: "operator"},
		Event: &account.ClockAdvanced{AdvanceID: uuid.NewString(), Seconds: by, OffsetSeconds: by},
	}})
	w.Shown(written.Position, err)
	_, err = w.Evidence.Expire(w.T.Context())
	w.Must(err)
	w.Shown(w.Log.Head(w.T.Context()))
}

// Where a picture or a recording was, the pages of the test, of its report's link and of
// its past say since when it is no longer kept. No broken picture is left.
func TestPagesSayWhatIsNoLongerKept(t *testing.T) {
	t.Parallel()
	w := setup(t)
	accountID := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: accountID})
	j := w.filmed(accountID)
	page := "/dashboard/jobs/" + j.ID
	shared := w.Call(dev, "POST", page+"/share", url.Values{"days": {"30"}})
	link := regexp.MustCompile(`/shared/[^<"]+`).FindString(shared.Body)
	shows := func(path string, has, hasNot []string) {
		t.Helper()
		as := dev
		if path == link {
			as = guest{}
		}
		got := w.Call(as, "GET", path, nil)
		if got.Status != 200 {
			t.Fatalf("%s: %d", path, got.Status)
		}
		for _, text := range has {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s is without %q", path, text)
			}
		}
		for _, text := range hasNot {
			if strings.Contains(got.Body, text) {
				t.Errorf("%s has %q", path, text)
			}
		}
	}
	const none, picture, film = "o longer kept", "<img ", "<video "
	shows(page, []string{picture, film, "Picture: &lt;http"}, []string{none})
	shows(link, []string{picture}, []string{none})
	shows(page+"/replay?at=1000", []string{picture}, []string{none})

	week := 7
	_, at, err := w.Commands.SetAccountRetention(t.Context(), pagetest.Client(accountID), retention.Change{
		Recordings: retention.Setting{Set: true, Value: &week},
	})
	w.Shown(at, err)
	w.later(accountID, 8)
	day := time.Now().AddDate(0, 0, 8).UTC().Format("2 Jan 2006")
	shows(page, []string{picture, "No longer kept since <time ", day, "</time>: recording, ", "kB (keepRecordingsDays of the account: 7 days)"}, []string{film})

	_, at, err = w.Commands.SetAccountRetention(t.Context(), pagetest.Client(accountID), retention.Change{
		Evidence: retention.Setting{Set: true, Value: &week},
	})
	w.Shown(at, err)
	w.later(accountID, 9)
	size := fmt.Sprintf("</time>: picture, %d bytes (keepEvidenceDays of the account: 7 days)", len(aPNG))
	shows(page, []string{size, "Picture: no longer kept since "}, []string{picture, film, "Picture: &lt;http"})
	shows(link, []string{size}, []string{picture})
	shows(page+"/replay?at=1000", []string{size}, []string{picture})
	tab := w.Tab(dev)
	tab.Open(w.Origin + page)
	pagetest.OnEveryScreen(t, tab, "job-gone")
}
