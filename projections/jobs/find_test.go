package jobs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/readmodel"
)

func TestATestIsFoundByItsWords(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	const id = "0b51a1c2-5e0f-4c6e-9a53-1f2d3c4b5a69"
	submit := func(id, accountID, title string, change func(*job.Created)) {
		w.Log.Record(domain.JobStream(id), modeltest.Created(accountID, func(e *job.Created) {
			e.Title = title
			change(e)
		}))
	}
	submit(id, "acc", "Checkout with a gift card", func(e *job.Created) {
		e.URL, e.ProjectID, e.Feature = "https://shop.acme.example/basket?step=2", "p1", "Pay with vouchers"
	})
	submit("j2", "acc", "Sign-up, l'Été it's", func(e *job.Created) {
		e.URL, e.CreatedAt, e.Description = "https://app.example", modeltest.Noon.Add(48*time.Hour), strings.Repeat("long ", 60_000)
	})
	submit("j3", "other", "Checkout of another account", func(*job.Created) {})
	w.Log.Record(domain.ProjectStream("p1"), &project.DeployReceived{JobID: id, Keys: []string{"commit:4f5e6d7c8b9a"}})
	w.Log.Record(domain.JobStream(id), modeltest.Claimed("ann"),
		&job.ItemChecked{ItemID: "i1", Status: job.ItemFail, Note: "a purple spinner", At: modeltest.Noon},
		&job.FindingAdded{Item: job.Item{ID: "f1", Description: "the imprint is missing on /o'brien's/page"}, Status: job.ItemFail, At: modeltest.Noon})
	w.Reach(w.Sup)
	find := func(s Search) (ids []string) {
		t.Helper()
		s.Limit = 10
		found, err := w.reads.Find(w.Ctx(), "acc", s)
		must.NoError(t, err)
		if found.More || found.Partial {
			t.Errorf("%+v: there are more than %d, or not all were searched: %v", s, len(found.Page), found.Partial)
		}
		for _, f := range found.Page {
			ids = append(ids, f.ID)
		}
		return ids
	}
	both, first, second := []string{"j2", id}, []string{id}, []string{"j2"}
	for words, want := range map[string][]string{
		"": both, "checkout": first, "CHECKOUT card": first, `"gift card"`: first, `"card gift"`: nil, "check": first, "ch": nil,
		"acme": first, "shop.acme.example": first, "basket": first, "vouchers": first, "purple": first, "imprint": first, "/o'brien's/page": first, "mail arrives": both,
		id: first, strings.ToUpper(id): first, id[:8]: first, "0b51a1c2-5e0f-4c6e-9a53-1f2d3c4b5a68": nil,
		"sign-up": second, "été": second, "e\u0301t\u200be\u0301": second, "it's": second, "long": second, "-gift": second, "gift or été": both, "gift -purple": nil, "another": nil,
		`'`: nil, `\`: nil, `"`: nil, `!!!`: nil, `'); DROP TABLE jobs`: nil, `a' | 'b`: nil, ":*": nil, "🦊": nil, "漢字": nil, "a & | ! <-> ( )": both,
		`gift "`: first, "checkout:*": first, "x\\'y": nil, strings.Repeat("a", 3000): nil,
	} {
		if got := find(Search{Words: words}); !slices.Equal(got, want) {
			t.Errorf("%.60q: found %v, want %v", words, got, want)
		}
	}
	day := func(n int) time.Time { return modeltest.Noon.Add(time.Duration(n) * 24 * time.Hour) }
	for i, test := range []struct {
		search Search
		want   []string
	}{
		{Search{Status: job.StatusClaimed}, first}, {Search{Status: job.StatusPending}, second}, {Search{ProjectID: "p1"}, first},
		{Search{Type: job.PaymentFlow}, both}, {Search{Type: job.GeneralQA}, nil}, {Search{Verdict: "fail"}, nil},
		{Search{From: day(1)}, second}, {Search{Until: day(1)}, first}, {Search{From: day(0), Until: day(3)}, both},
		{Search{Words: "mail", Status: job.StatusClaimed, ProjectID: "p1", Type: job.PaymentFlow, Until: day(1)}, first},
	} {
		if got := find(test.search); !slices.Equal(got, test.want) {
			t.Errorf("%d: found %v, want %v", i, got, test.want)
		}
	}

	// What the report says replaces what was said before.
	w.Log.Record(domain.JobStream(id), modeltest.Completed("fail"))
	w.Reach(w.Sup)
	if got := find(Search{Words: "purple"}); got != nil {
		t.Errorf("a note that the report has not finds %v", got)
	}
	found, err := w.reads.Find(w.Ctx(), "acc", Search{Words: "mostly fine", Verdict: "fail", Limit: 1})
	must.NoError(t, err)
	page := found.Page
	want := Found{
		Summary: Summary{
			ID: id, ProjectID: "p1", Status: job.StatusCompleted, Title: "Checkout with a gift card", URL: "https://shop.acme.example/basket?step=2",
			Type: job.PaymentFlow, TypeEcho: "Payment Flow", ReportID: "r1", CreatedAt: modeltest.Noon, OverallStatus: "fail",
		},
		Asked: "Pay with vouchers", PassCount: 1, FailCount: 1, ClaimedAt: modeltest.At(1), CompletedAt: modeltest.At(30), Commit: "4f5e6d7c8b9a",
	}
	modeltest.Same(t, page, []Found{want})
	if page[0].Took() != 29*time.Minute {
		t.Errorf("it took %v", page[0].Took())
	}
	w.Sound(w.Sup, "jobs")
	var differ int
	must.NoError(t, w.reads.db.GetContext(w.Ctx(), &differ, `
SELECT count(*)
FROM readmodel.jobs j
FULL JOIN readmodel.job_words w ON w.job_id = j.id AND w.status = j.status AND w.project_id = j.project_id
WHERE j.id IS NULL OR w.job_id IS NULL`))
	if differ > 0 {
		t.Errorf("%d rows of words are in another state or project than their tests", differ)
	}
}

// The newest tests are walked, and the index of words finds what is not among them.
func TestASearchWalksTheNewestTestsAndThenReadsTheIndexOfWords(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(manyJobsSQL)
	w.Exec(`
INSERT INTO {jobs}.job_words (created_at, job_id, account_id, project_id, status, words)
SELECT created_at, id, account_id, project_id, status, ` + accountsOwn(`to_tsvector('simple', 'checkout n' || id)::text`, "account_id") + `::tsvector
FROM {jobs}.jobs`)
	w.Exec(`
INSERT INTO {jobs}.job_counts (account_id, project_id, status, jobs, passed)
SELECT account_id, project_id, status, count(*), 0
FROM {jobs}.jobs
GROUP BY account_id, project_id, status`)
	w.Exec("ANALYZE {jobs}.jobs, {jobs}.job_words")
	for _, test := range []struct {
		search Search
		walk   bool
		index  string
	}{
		{Search{Words: "njob7"}, false, "job_words_by_word"},
		{Search{Words: "njob777", Status: job.StatusCompleted}, false, "job_words_by_word"},
		{Search{Words: "checkout"}, false, "job_words_by_word"}, // though all tests have it
		{Search{Words: "checkout", Status: job.StatusPending, ProjectID: "p7"}, false, "job_words_by_word"},
		{Search{Words: `"njob777 checkout"`, From: modeltest.Noon}, false, "job_words_by_word"},
		{Search{Type: job.GeneralQA, Verdict: "fail"}, false, "job_words_by_word"},
		{Search{Words: "checkout"}, true, "jobs_by_account"},
		{Search{Words: `"checkout njob7"`}, true, "jobs_by_account"},
		{Search{Words: "check", Status: job.StatusPending}, true, "jobs_by_status"},
		{Search{Words: "check", ProjectID: "p7"}, true, "jobs_by_project"},
		{Search{From: modeltest.Noon}, true, "jobs_by_account"},
	} {
		test.search.Limit = 50
		where := readmodel.WhereAccount("acc1")
		plan := w.Plan(test.search.page(where, test.walk), where.Args...)
		if !test.walk && !strings.Contains(plan, "jobs_pkey") {
			t.Errorf("%+v reads other jobs than those of the page:\n%s", test.search, plan)
		}
		if !strings.Contains(plan, test.index) || strings.Contains(plan, "Seq Scan on job") || test.walk && strings.Contains(plan, "Sort") {
			t.Errorf("%+v does not walk %s:\n%s", test.search, test.index, plan)
		}
	}
	find := func(s Search) []Found {
		t.Helper()
		s.Limit = 50
		found, err := w.reads.Find(w.Ctx(), "acc1", s)
		must.NoError(t, err)
		if found.Partial {
			t.Errorf("%+v: not all tests were searched", s)
		}
		return found.Page
	}
	// The last of 4,000 tests is not among those that are walked.
	if found := find(Search{Words: "njob11998"}); len(found) != 1 || found[0].ID != "job11998" {
		t.Errorf("the oldest test is not found: %d", len(found))
	}
	if page := find(Search{Words: "checkout", Offset: 3980}); len(page) != 20 || page[19].ID != "job11998" {
		t.Errorf("the last page has %d tests", len(page))
	}
	if page := find(Search{Words: "checkout", Status: job.StatusPending, ProjectID: "p1"}); len(page) != 0 {
		t.Errorf("%d waiting tests are found in a project that has none", len(page))
	}
	if page := find(Search{Words: "njob11995", Status: job.StatusCompleted}); len(page) != 1 || page[0].ID != "job11995" {
		t.Errorf("an old test is not found by its words and its state: %d", len(page))
	}
	// Either way finds the same.
	for _, walk := range []bool{true, false} {
		s := Search{Words: "checkout njob1", Limit: 50}
		where := readmodel.WhereAccount("acc1")
		var found []Found
		must.NoError(t, w.reads.db.SelectContext(w.Ctx(), &found, s.page(where, walk), where.Args...))
		if len(found) != 51 || found[0].ID != "job1" {
			t.Errorf("walk %v: found %d", walk, len(found))
		}
	}
}

// The index knows no phrases. A phrase of common words is looked for in the newest tests
// only, which the answer says.
func TestAPhraseOfCommonWordsIsLookedForInTheNewestTests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(`
INSERT INTO {jobs}.job_words (created_at, job_id, account_id, project_id, status, words)
SELECT now() - n * interval '1 minute', 'job' || n, 'acc', '', 'pending', ` + accountsOwn(`to_tsvector('simple', 'gift card n' || n)::text || ' ''=kind:custom''' `, "'acc'") + `::tsvector
FROM generate_series(1, 5001) n`)
	w.Exec("INSERT INTO {jobs}.job_counts (account_id, project_id, status, jobs, passed) VALUES ('acc', '', 'pending', 5001, 0)")
	w.Exec("ANALYZE {jobs}.job_words")
	for words, partial := range map[string]bool{
		"gift card": false, `"gift card"`: true, `"card gift"`: true, "card-gift": false, "-gift": true, "n7 -gift": false, `"gift card" n77`: false,
		`"gift n77"`: false, "card or gift": false,
	} {
		found, err := w.reads.Find(w.Ctx(), "acc", Search{Words: words, Limit: 50})
		must.NoError(t, err)
		if found.Partial != partial {
			t.Errorf("%s: partial %v", words, found.Partial)
		}
		found, err = w.reads.Find(w.Ctx(), "acc", Search{Words: words, From: time.Now().Add(-24 * time.Hour), Limit: 50})
		must.NoError(t, err)
		if found.Partial {
			t.Errorf("%s of a day is partial", words)
		}
	}
	where := readmodel.WhereAccount("acc")
	query := Search{Words: `"card gift"`}.candidates(where)
	if plan := w.Plan(query, where.Args...); !strings.Contains(plan, "job_words_by_word") || strings.Contains(plan, "Seq Scan on job_words") {
		t.Errorf("the candidates are not read from the index:\n%s", plan)
	}
}
