package dashboard_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/eventually"
	"humanqa/projections/jobs"
)

var wholeMain = regexp.MustCompile(`(?s)<main.*</main>`)

// A review of a site that cannot be reached has no health, and its page speaks of no
// checker: no person took part.
func TestAReviewOfAnUnreachableSiteHasNoHealthAndNoChecker(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.test(account, "Front page", func(in *command.SubmitJob) {
		in.URL, in.Type, in.TypeEcho, in.Items, in.Description = "https://nothing.invalid/", job.AIReview, "AI Review", nil, ""
	})
	path := "/dashboard/jobs/" + id
	eventually.True(t, "the review is analysed", func() bool {
		j, err := w.Reads.Jobs.Job(t.Context(), account, id)
		w.Must(err)
		return j.AIReport() == jobs.AIReportReady
	})
	for _, path := range []string{path, path + "/replay"} {
		page := html.UnescapeString(wholeMain.FindString(w.Call(owner, "GET", path, nil).Body))
		if at := strings.Index(strings.ToLower(page), "checker"); page == "" || at >= 0 {
			t.Errorf("%s speaks of a checker: %q", path, page[max(0, at-80):min(len(page), at+80)])
		}
	}
	page := w.Call(owner, "GET", path, nil).Body
	for _, want := range []string{"<b>0</b><span>health of 100</span>", "The page cannot be reached", "Summary of the review", "from the review."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the review is without %q", want)
		}
	}
	if strings.Contains(page, "Rate the") {
		t.Error("a review can be rated")
	}
}
