package main

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
)

// upload sends a picture under a claim and gives its link.
func (s *qa) upload(checker, job, token string) (link string) {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "cart.png")
	must.NoError(s.t, err)
	_, err = part.Write([]byte(filetest.PNG("")))
	must.NoError(s.t, err)
	must.NoError(s.t, form.Close())
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/v1/checker/jobs/"+job+"/evidence", &body)
	must.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+checker)
	req.Header.Set("X-Claim-Token", token)
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	must.NoError(s.t, err)
	defer func() { _ = res.Body.Close() }()
	var kept struct{ URL string }
	must.NoError(s.t, json.NewDecoder(res.Body).Decode(&kept))
	return kept.URL
}

// summaryPictures has a step end with a failure that a checker shows by a picture, and by a
// link to another site.
func summaryPictures(t *testing.T, s *qa) {
	key, checker := s.account(100, false), s.checker()
	a := newAction(t, s, key, newPullRequest(t).URL)
	a.head("d")
	step, _ := a.start("1")
	job := s.latest(key)
	raw, err := json.Marshal(s.call("POST", "/v1/checker/claims", checker, map[string]string{"jobId": job}))
	must.NoError(t, err)
	var claim struct {
		ClaimToken json.RawMessage
		Checklist  []struct{ ID string }
	}
	must.NoError(t, json.Unmarshal(raw, &claim))
	token := strings.Trim(string(claim.ClaimToken), `"`)
	own, elsewhere := s.upload(checker, job, token), "https://evil.example/v1/evidence/1"
	for i, item := range claim.Checklist {
		verdict := map[string]any{"status": "pass"}
		switch i {
		case 0:
			verdict = map[string]any{"status": "fail", "note": "see <" + elsewhere + ">", "screenshotUrls": []string{own, elsewhere}}
		case 1:
			verdict["screenshotUrl"] = s.upload(checker, job, token) // of what passed
		}
		s.call("PUT", "/v1/checker/jobs/"+job+"/items/"+item.ID, checker, verdict, "X-Claim-Token", token)
	}
	s.call("POST", "/v1/checker/jobs/"+job+"/complete", checker, map[string]string{"summary": "done"}, "X-Claim-Token", token)
	_ = step.Wait() // the summary tells
	summary := a.file("summary")
	_, image, _ := strings.Cut(summary, "\n[![Picture 1 of a failure](")
	image, _, _ = strings.Cut(image, ")")
	if strings.Count(summary, "[![") != 1 || strings.Contains(image, "evil") {
		t.Fatalf("the summary is\n%s", summary)
	}
	res, err := http.Get(image) //nolint:noctx // the service's own
	must.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the picture %s is %s", image, res.Status)
	}
}
