package webhooks_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

var update = flag.Bool("update", false, "write the golden files")

func TestPayloads(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	session := created("p1")
	session.SessionID, session.Urgent = "sess", true
	b.log.record(domain.JobStream("j1"), session, claimed(), completed())
	b.log.record(domain.JobStream("j2"), created("p1"), &job.CancelledBy{Reason: "client", Refund: 5, At: at})
	b.subscribe()
	b.dispatch()

	for range 5 {
		r := e.next()
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(r.body), "", "  "); err != nil {
			t.Fatalf("%s: %v", r.event(), err)
		}
		pretty.WriteByte('\n')
		for _, secret := range []string{"ann-the-checker", "sealed-credentials", "sealed-instructions", "secret of"} {
			if strings.Contains(r.body, secret) {
				t.Errorf("%s shows %q", r.event(), secret)
			}
		}
		var body struct{ JobID string }
		if err := json.Unmarshal([]byte(r.body), &body); err != nil {
			t.Fatal(err)
		}
		golden(t, r.event()+"."+body.JobID+".json", pretty.Bytes())
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}
