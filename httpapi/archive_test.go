package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Decisions, "Archive".
func TestAnArchivedProjectTakesNoTestInAnyWay(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	projectID, hook := s.hook(key, `,"defaultUrl":"https://shop.example.com/"`)
	path := "/v1/projects/" + projectID
	inIt := jobWith(`"projectId":"` + projectID + `"`)
	submit := func() string {
		id, _ := s.call(key, "POST", "/v1/jobs", inIt).want(http.StatusCreated)["jobId"].(string)
		return id
	}
	waiting, taken, elsewhere := submit(), submit(), s.submitted(key)
	batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, func(_ int, _ string) string { return inIt })).want(http.StatusCreated)
	batchID, _ := batch["batchId"].(string)
	lobby := s.openSession(key, twoSlots)
	equal(t, lobby.project, projectID)
	work := s.claims(s.checker(), taken)

	available := func() any { return s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)["available"] }
	archived := s.call(key, "POST", path+"/archive", "").want(http.StatusOK)
	with(t, archived, map[string]any{"projectId": projectID, "cancelled": 5.0, "creditsRefunded": 25.0, "creditsExpired": 0.0})
	equal(t, available(), 1000.0-10) // the taken test, and that of no project
	for _, id := range append(texts(batch["jobIds"]), waiting) {
		with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
			"status": "cancelled", "cancelReason": job.CancelArchived, "creditsUsed": 0.0,
		})
	}
	with(t, s.call(key, "GET", "/v1/hosted/sessions/"+lobby.id, "").want(http.StatusOK), map[string]any{"status": "cancelled"})
	with(t, s.call(key, "GET", "/v1/jobs/"+elsewhere, "").want(http.StatusOK), map[string]any{"status": "pending"})

	repeat := s.call(key, "POST", path+"/archive", "").want(http.StatusOK)
	with(t, repeat, map[string]any{"archivedAt": archived["archivedAt"], "cancelled": 0.0})

	byAddress := `{"url":"https://shop.example.com/cart"}`
	ways := map[string]func() result{
		"a job":          func() result { return s.call(key, "POST", "/v1/jobs", inIt) },
		"an estimate":    func() result { return s.call(key, "POST", "/v1/estimate", inIt) },
		"a retest":       func() result { return s.call(key, "POST", "/v1/jobs/"+waiting+"/retest", "") },
		"a batch again":  func() result { return s.call(key, "POST", "/v1/jobs/bulk/"+batchID+"/repeat", "") },
		"a hosted test":  func() result { return s.call(key, "POST", "/v1/hosted/test", byAddress) },
		"a session":      func() result { return s.call(key, "POST", "/v1/hosted/sessions", twoSlots) },
		"a deploy":       func() result { return s.call("", "POST", hook, `{"commitSha":"abc"}`) },
		"a deploy's try": func() result { return s.call("", "POST", hook+"?dryRun=true", `{"commitSha":"abc"}`) },
		"a batch with one test of it": func() result {
			return s.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, func(i int, body string) string {
				if i == 1 {
					return inIt
				}
				return body
			}))
		},
		"a review": func() result {
			return s.call(key, "POST", "/v1/jobs", strings.Replace(inIt, "Payment Flow", "AI Review", 1))
		},
		"a step of a loop": func() result {
			return s.call(key, "POST", "/v1/hosted/test", byAddress, "X-Agent-Skill", "fixer", "X-Agent-Iteration", "1")
		},
		"a prepared fix": func() result {
			return s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+projectID+`","fixedDescriptions":["the cart"]}`)
		},
	}
	for name, way := range ways {
		before := s.written()
		refused := way().refused(http.StatusConflict, domain.CodeConflict)
		if hint, _ := refused["hint"].(string); !strings.Contains(hint, "restore it") || s.written() != before {
			t.Errorf("%s: %v, and %d events were written", name, refused, s.written()-before)
		}
	}
	equal(t, available(), 1000.0-10)

	for n := range work.items {
		work.check(n, passes)
	}
	work.completes("done")
	with(t, s.call(key, "GET", "/v1/jobs/"+taken, "").want(http.StatusOK), map[string]any{"status": "completed", "creditsUsed": 5.0})

	equal(t, s.call(key, "POST", path+"/restore", "").want(http.StatusOK), map[string]any{
		"projectId": projectID, "archivedAt": nil, "cancelled": 0.0, "creditsRefunded": 0.0, "creditsExpired": 0.0,
	})
	for _, name := range []string{"a job", "a retest", "a batch again", "a hosted test", "a session", "a deploy"} {
		if r := ways[name](); r.Code != http.StatusCreated {
			t.Errorf("%s after the restore: %d %s", name, r.Code, r.Body)
		}
	}
}

// A project in use with the same address is found before an archived one.
func TestAnArchivedProjectGivesItsAddressToAnotherOne(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	older := s.project(key, `{"name":"older","defaultUrl":"https://blog.example.com/"}`)
	newer := s.project(key, `{"name":"newer","defaultUrl":"https://blog.example.com/"}`)
	s.call(key, "POST", "/v1/projects/"+newer+"/archive", "").want(http.StatusOK)
	equal(t, s.hosted(key, "blog.example.com", "").want(http.StatusCreated)["projectId"], any(older))
}

func TestTheListOfProjectsLeavesArchivedOnesOut(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(10)
	kept, put := s.project(key, `{"name":"kept"}`), s.project(key, `{"name":"put away"}`)
	list := func(query string) (ids []string) {
		t.Helper()
		body := s.call(key, "GET", "/v1/projects"+query, "").want(http.StatusOK)
		for _, p := range body["projects"].([]any) {
			ids = append(ids, p.(map[string]any)["id"].(string))
		}
		equal(t, body["total"], any(float64(len(ids))))
		return ids
	}
	before := s.call(key, "GET", "/v1/projects", "").Header().Get("X-Log-Position")
	archived := s.call(key, "POST", "/v1/projects/"+put+"/archive", "").want(http.StatusOK)["archivedAt"]
	equal(t, list(""), []string{kept})
	equal(t, list("?archived=false"), []string{kept})
	equal(t, list("?archived=true"), []string{put})
	equal(t, list("?asOf="+before), []string{put, kept})
	equal(t, list("?archived=true&asOf="+before), []string(nil))
	equal(t, s.call(key, "GET", "/v1/projects?archived=yes", "").paths(), []string{"archived"})
	after := s.call(key, "GET", "/v1/projects", "").Header().Get("X-Log-Position")
	equal(t, list("?archived=true&asOf="+after), []string{put})
	with(t, s.call(key, "GET", "/v1/projects/"+put, "").want(http.StatusOK), map[string]any{"archivedAt": archived})
	with(t, s.call(key, "GET", "/v1/projects/"+kept, "").want(http.StatusOK), map[string]any{"archivedAt": nil})
}

// Decisions, "Bulk".
func TestABatchHasAName(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	named := strings.Replace(bulkOf(2, nil), "{", `{"name":"  Release 41 ",`, 1)
	made := s.call(key, "POST", "/v1/jobs/bulk", named).want(http.StatusCreated)
	equal(t, made["name"], any("Release 41"))
	id, _ := made["batchId"].(string)
	jobs := texts(made["jobIds"])
	nameOf := func(path, field string) any { return s.call(key, "GET", path, "").want(http.StatusOK)[field] }
	equal(t, nameOf("/v1/jobs/bulk/"+id, "name"), any("Release 41"))
	equal(t, nameOf("/v1/jobs/"+jobs[0], "batchName"), any("Release 41"))
	again := s.call(key, "POST", "/v1/jobs/bulk/"+id+"/repeat", "").want(http.StatusCreated)
	equal(t, again["name"], any("Release 41"))
	alone, _ := s.call(key, "POST", "/v1/jobs/"+jobs[0]+"/retest", "").want(http.StatusCreated)["jobId"].(string)
	equal(t, nameOf("/v1/jobs/"+alone, "batchName"), nil)
	equal(t, s.call(key, "POST", "/v1/jobs/bulk", strings.Replace(named, "Release 41", strings.Repeat("x", 201), 1)).paths(), []string{"name"})
	if rows := s.export(key, "jobs").Body.String(); strings.Count(rows, `"batch_name":"Release 41"`) != 4 || !strings.Contains(rows, `"batch_id":"`+id+`"`) {
		t.Errorf("the export is %s", rows)
	}

	// The name is a text of each job, and the batch shows that of the first one.
	for n, one := range []string{jobs[1], jobs[0]} {
		s.call(key, "POST", "/v1/jobs/"+one+"/cancel", "").want(http.StatusOK)
		cause := operator(domain.NewCommandID())
		cause.AccountID = accountID
		at, err := s.commands.EraseJob(t.Context(), cause, one, "ann", "asked for")
		s.visible(at, err)
		want := []any{"Release 41", domain.ErasedText}[n]
		equal(t, nameOf("/v1/jobs/"+one, "batchName"), any(domain.ErasedText))
		equal(t, nameOf("/v1/jobs/bulk/"+id, "name"), want)
	}
}
